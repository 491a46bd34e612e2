from __future__ import annotations

import asyncio

import pytest

from compaction.core.hooks import MAX_ENDPOINTS, Endpoint, Event
from compaction.errors import Conflict, InvalidRequest
from compaction.store import hooks
from compaction.store.engine import Database
from compaction.store.hooks import HookRow
from tests.integration.store.stage import Stage, staged

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "A" * 32
NOBODYS = "00000000-0000-7000-8000-000000000000"


async def added(stage: Stage, url: str = "https://example.com/?token=t", event: Event = "pre_compact") -> HookRow:
    """A new hook of the stage's tenant."""
    async with stage.database.begin() as conn:
        return await hooks.add(conn, stage.tenant_id, event=event, url=url, secret=SECRET, timeout_seconds=2.5)


async def listed(stage: Stage) -> list[HookRow]:
    """All hooks of the stage's tenant."""
    async with stage.database.connect() as conn:
        rows, following = await hooks.list_hooks(conn, stage.tenant_id)
    assert following is None
    return rows


async def test_a_hook_is_stored_and_read(stage: Stage) -> None:
    row = await added(stage)
    assert (row.event, row.url, row.timeout_seconds, row.enabled) == (
        "pre_compact",
        "https://example.com/?token=t",
        2.5,
        True,
    )
    assert "token" not in repr(row)
    async with stage.database.connect() as conn:
        assert await hooks.get(conn, stage.tenant_id, row.id) == row
        assert await hooks.get(conn, stage.tenant_id, row.id.upper()) == row
        assert await hooks.get(conn, stage.tenant_id, NOBODYS) is None
        assert await hooks.get(conn, stage.tenant_id, "no id") is None


async def test_a_job_gets_the_enabled_hooks_with_their_secrets_oldest_first(stage: Stage) -> None:
    first = await added(stage, "https://one.example.com/")
    off = await added(stage)
    second = await added(stage, "https://two.example.com/", "session_start")
    await stage.change("UPDATE hooks SET enabled = false WHERE id = %s", off.id)
    async with stage.database.connect() as conn:
        found = await hooks.endpoints(conn, stage.tenant_id)
    assert found == (
        Endpoint(first.id, "pre_compact", "https://one.example.com/", SECRET, 2.5),
        Endpoint(second.id, "session_start", "https://two.example.com/", SECRET, 2.5),
    )


async def test_a_list_comes_in_pages(stage: Stage) -> None:
    rows = [await added(stage) for _ in range(3)]
    async with stage.database.connect() as conn:
        first, following = await hooks.list_hooks(conn, stage.tenant_id, limit=2)
        rest, end = await hooks.list_hooks(conn, stage.tenant_id, limit=2, cursor=following)
        with pytest.raises(InvalidRequest):
            await hooks.list_hooks(conn, stage.tenant_id, cursor="made-up")
    assert ([*first, *rest], end) == (rows, None)


async def test_a_hook_is_removed_once(stage: Stage) -> None:
    row = await added(stage)
    async with stage.database.connect() as conn:
        assert await hooks.remove(conn, stage.tenant_id, row.id)
        assert not await hooks.remove(conn, stage.tenant_id, row.id)
        assert not await hooks.remove(conn, stage.tenant_id, "no id")
    assert await listed(stage) == []


async def test_tenants_do_not_see_each_others_hooks(stage: Stage, database: Database) -> None:
    row = await added(stage)
    other = await staged(database)
    assert await listed(other) == []
    async with database.connect() as conn:
        assert await hooks.get(conn, other.tenant_id, row.id) is None
        assert not await hooks.remove(conn, other.tenant_id, row.id)
        assert await hooks.endpoints(conn, other.tenant_id) == ()
    assert await listed(stage) == [row]


async def test_a_tenant_has_at_most_twenty_hooks_however_many_come_at_once(stage: Stage) -> None:
    made = await asyncio.gather(*(added(stage) for _ in range(MAX_ENDPOINTS + 5)), return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in made) == 5
    assert len(await listed(stage)) == MAX_ENDPOINTS == 20


async def test_an_address_with_nul_is_refused(stage: Stage) -> None:
    with pytest.raises(InvalidRequest):
        await added(stage, "https://example.com/\0")
