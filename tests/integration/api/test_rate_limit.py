"""How often a key may ask: shared by all processes through Redis, and by each for itself while Redis is away."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.rate_limit import MAX_LOCAL_KEYS, Bucketed, LocalBuckets, SharedBuckets
from compaction.core.token_bucket import Draw, Flow, flow_of
from compaction.settings import Settings
from compaction.store.tenants import SCOPES
from ops.embedded.ports import free_port
from tests.integration.api.conftest import KEY, RememberingDoorbell, speaking_to

pytestmark = pytest.mark.anyio

PER_MINUTE = 30  # five at once, one more every two seconds
_numbers = itertools.count(1)


@asynccontextmanager
async def limited(settings: Settings, **changes: str | int) -> AsyncIterator[FastAPI]:
    """One process of the API with a limit."""
    own = settings.model_copy(update={"key_requests_per_minute": PER_MINUTE} | changes)
    app = create_app(own, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app):
        yield app


async def fresh_key(admin: httpx2.AsyncClient) -> str:
    wanted = {"tenant": f"limited-{next(_numbers)}", "scopes": list(SCOPES)}
    return str((await admin.post("/v1/api-keys", json=wanted)).json()["key"])


async def asked(app: FastAPI, key: str, times: int) -> list[httpx2.Response]:
    async with speaking_to(app, key) as client:
        return [await client.get("/v1/compactions") for _ in range(times)]


async def test_a_key_that_asks_too_often_is_told_when_to_come_again(
    settings: Settings, admin: httpx2.AsyncClient
) -> None:
    key = await fresh_key(admin)
    async with limited(settings) as app:
        answers = await asked(app, key, 10)
    statuses = [answer.status_code for answer in answers]
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]
    refused = answers[statuses.index(429)]
    assert (refused.json()["code"], refused.headers["content-type"]) == ("rate_limited", "application/problem+json")
    assert refused.headers["retry-after"] in {"1", "2"}
    assert refused.headers["ratelimit-policy"] == '"key";q=30;w=60'
    assert refused.headers["ratelimit"].startswith('"key";r=0;t=')
    assert answers[0].headers["ratelimit"] == '"key";r=4;t=2'


async def test_one_key_does_not_use_up_anothers(settings: Settings, admin: httpx2.AsyncClient) -> None:
    loud, quiet = await fresh_key(admin), await fresh_key(admin)
    async with limited(settings) as app:
        await asked(app, loud, 10)
        assert [answer.status_code for answer in await asked(app, quiet, 1)] == [200]


async def test_all_processes_count_together(settings: Settings, admin: httpx2.AsyncClient) -> None:
    key = await fresh_key(admin)
    async with limited(settings) as one, limited(settings) as other:
        both = await asked(one, key, 3) + await asked(other, key, 3) + await asked(one, key, 4)
    assert [answer.status_code for answer in both].count(429) >= 2


async def test_calls_without_a_key_and_with_a_wrong_one_are_refused_as_ever(settings: Settings) -> None:
    async with limited(settings) as app:
        for key in (None, KEY[:-1] + "b"):
            (answer,) = await asked(app, key or "", 1)
            assert answer.status_code == 401
            assert "ratelimit" not in answer.headers


async def test_without_the_setting_nothing_is_counted(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    answers = await asked(app, await fresh_key(admin), 20)
    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit" not in answers[0].headers


async def test_while_redis_is_away_each_process_limits_by_itself(settings: Settings, admin: httpx2.AsyncClient) -> None:
    """Nobody is locked out, and nobody gets away with everything."""
    key = await fresh_key(admin)
    async with limited(settings, redis_url=f"redis://127.0.0.1:{free_port()}/0") as app:
        statuses = [answer.status_code for answer in await asked(app, key, 10)]
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]


@pytest.mark.parametrize("kind", ["local", "shared"])
async def test_both_kinds_of_bucket_keep_to_the_same_rule(kind: str, settings: Settings) -> None:
    """Five at once, then none, and one more for each half second that passes: on a clock that cannot be told."""
    flow = replace(flow_of(PER_MINUTE), per_second=2.0)
    buckets: Bucketed = LocalBuckets() if kind == "local" else SharedBuckets(settings.redis_url)
    name = f"rule-{kind}"
    outcomes = [await buckets.draw(name, flow) for _ in range(5)]
    assert [outcome.allowed for outcome in outcomes] == [True] * 5
    refused = await drawn_until(buckets, name, flow, allowed=False)
    assert 0 < refused.wait_seconds <= 0.5
    await asyncio.sleep(refused.wait_seconds + 0.01)
    assert (await buckets.draw(name, flow)).allowed
    if isinstance(buckets, SharedBuckets):
        await buckets.aclose()


async def drawn_until(buckets: Bucketed, name: str, flow: Flow, *, allowed: bool) -> Draw:
    for _ in range(100):
        outcome = await buckets.draw(name, flow)
        if outcome.allowed is allowed:
            return outcome
    raise AssertionError("the bucket never ran dry")


async def test_a_process_keeps_only_so_many_buckets() -> None:
    buckets = LocalBuckets(lambda: 0.0)
    flow = flow_of(6)
    await buckets.draw("first", flow)
    for number in range(MAX_LOCAL_KEYS):
        await buckets.draw(str(number), flow)
    assert len(buckets._buckets) == MAX_LOCAL_KEYS
    assert "first" not in buckets._buckets
