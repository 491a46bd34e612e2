"""Keys: shown once, stored as a hash, good until they expire or are revoked."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from compaction import errors
from compaction.store import keys, tenants
from compaction.store.tenants import IssuedKey, Principal
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio

OURS = "ck_operator_" + "k" * 43


async def issue(stage: Stage, *, expires_at: datetime | None = None, scopes: tuple[str, ...] = ("read",)) -> IssuedKey:
    async with stage.database.begin() as conn:
        return await tenants.create_key(conn, stage.tenant_id, scopes, expires_at=expires_at, pepper="pepper")


async def who(stage: Stage, key: str, pepper: str = "pepper") -> Principal | None:
    async with stage.database.begin() as conn:
        return await tenants.authenticate(conn, key, pepper)


async def test_a_tenant_is_made_once(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        assert await tenants.ensure_tenant(conn, stage.tenant) == stage.tenant_id


@pytest.mark.parametrize("name", ["", "x" * 201, "nul\0"])
async def test_an_impossible_tenant_name_is_an_invalid_request(stage: Stage, name: str) -> None:
    async with stage.database.begin() as conn:
        with pytest.raises(errors.InvalidRequest):
            await tenants.ensure_tenant(conn, name)


async def test_a_new_key_says_who_calls(stage: Stage) -> None:
    issued = await issue(stage, scopes=("read", "jobs:write"))
    assert re.fullmatch(r"ck_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", issued.key)
    expected = Principal(stage.tenant_id, stage.tenant, issued.public_id, frozenset({"read", "jobs:write"}))
    assert await who(stage, issued.key) == expected


async def test_the_secret_is_stored_nowhere_and_shown_in_no_repr(stage: Stage) -> None:
    issued = await issue(stage)
    secret = issued.key.rsplit("_", 1)[0]
    [(row,)] = await stage.query("SELECT api_keys::text FROM api_keys WHERE public_id = %s", issued.public_id)
    assert issued.key not in row
    assert secret not in row.replace(issued.public_id, "")
    assert issued.key not in repr(issued)


async def test_a_key_with_one_wrong_character_or_another_pepper_is_nobodys(stage: Stage) -> None:
    issued = await issue(stage)
    wrong = issued.key[:-1] + ("A" if issued.key[-1] != "A" else "B")
    assert await who(stage, wrong) is None
    assert await who(stage, issued.key, "another pepper") is None


@pytest.mark.parametrize(
    "key", ["", "ck_", "Bearer x", "ck_abcdefgh_" + "x" * 43, "ck_abcdefgh_" + "\0" * 43, "\ud83d"]
)
async def test_what_is_no_key_of_ours_is_nobodys(stage: Stage, key: str) -> None:
    assert await who(stage, key) is None


async def test_an_expired_key_is_nobodys(stage: Stage) -> None:
    now = datetime.now(UTC)
    assert await who(stage, (await issue(stage, expires_at=now - timedelta(minutes=5))).key) is None
    assert await who(stage, (await issue(stage, expires_at=now + timedelta(days=1))).key) is not None


async def test_a_revoked_key_is_nobodys(stage: Stage) -> None:
    issued = await issue(stage)
    await stage.change("UPDATE api_keys SET revoked_at = now() WHERE public_id = %s", issued.public_id)
    assert await who(stage, issued.key) is None


async def test_use_is_noted_at_most_once_a_minute(stage: Stage) -> None:
    issued = await issue(stage)
    used = "SELECT last_used_at FROM api_keys WHERE public_id = %s"
    await who(stage, issued.key)
    first = await stage.query(used, issued.public_id)
    await who(stage, issued.key)
    assert await stage.query(used, issued.public_id) == first != [(None,)]
    earlier = "UPDATE api_keys SET last_used_at = now() - interval '61 seconds' WHERE public_id = %s"
    await stage.change(earlier, issued.public_id)
    await who(stage, issued.key)
    assert await stage.query(used, issued.public_id) > first


async def test_an_unknown_scope_is_an_invalid_request(stage: Stage) -> None:
    with pytest.raises(errors.InvalidRequest):
        await issue(stage, scopes=("everything",))


async def test_the_operators_own_key_is_good_from_the_start_and_starting_again_changes_nothing(stage: Stage) -> None:
    async def start() -> Principal:
        async with stage.database.begin() as conn:
            return await tenants.bootstrap(conn, OURS, "pepper")

    started = await asyncio.gather(*(start() for _ in range(5)))
    assert len(set(started)) == 1
    principal = await who(stage, OURS)
    assert principal == started[0]
    assert principal.tenant == "default"
    assert principal.scopes == set(tenants.SCOPES)


async def test_the_operators_key_with_a_new_secret_replaces_the_old_one(stage: Stage) -> None:
    newer = OURS[:-1] + "x"
    async with stage.database.begin() as conn:
        await tenants.bootstrap(conn, OURS, "pepper")
        await tenants.bootstrap(conn, newer, "pepper")
    assert await who(stage, OURS) is None
    assert await who(stage, newer) is not None


async def test_a_malformed_operators_key_is_an_invalid_request_that_does_not_quote_it(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        with pytest.raises(errors.InvalidRequest) as caught:
            await tenants.bootstrap(conn, "hunter2", "pepper")
    assert "hunter2" not in str(caught.value)


async def test_a_public_id_of_another_tenant_is_a_conflict(stage: Stage) -> None:
    issued = await issue(stage)
    async with stage.database.begin() as conn:
        other = await tenants.ensure_tenant(conn, f"{stage.tenant}-2")
        with pytest.raises(errors.Conflict):
            await tenants.create_key(conn, other, ("read",), pepper="pepper", key=issued.key)
    assert await who(stage, issued.key) is not None


async def test_a_revoked_key_is_nobodys_and_its_first_revocation_counts(stage: Stage) -> None:
    issued = await issue(stage)
    other = await issue(stage)
    for _ in range(2):
        async with stage.database.begin() as conn:
            assert await keys.revoke(conn, stage.tenant_id, issued.public_id)
    assert await who(stage, issued.key) is None
    assert await who(stage, other.key) is not None
    async with stage.database.begin() as conn:
        assert not await keys.revoke(conn, stage.tenant_id + 1, other.public_id)
        assert not await keys.revoke(conn, stage.tenant_id, "nul\0nul\0")
        rows, following = await keys.list_keys(conn, stage.tenant_id, limit=1)
        (rest, end) = await keys.list_keys(conn, stage.tenant_id, limit=1, cursor=following)
    assert [row.public_id for row in rows + rest] == [issued.public_id, other.public_id]
    assert (rows[0].revoked_at is None, rest[0].revoked_at is None, end) == (False, True, None)


async def test_a_revoked_bootstrap_key_stays_revoked_at_the_next_start(stage: Stage) -> None:
    lost = "ck_lostone1_" + "k" * 43
    async with stage.database.begin() as conn:
        operator = await tenants.bootstrap(conn, lost, "pepper")
        assert await keys.revoke(conn, operator.tenant_id, operator.public_id)
        await tenants.bootstrap(conn, lost, "pepper")
    assert await who(stage, lost) is None
