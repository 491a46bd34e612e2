"""Broken bodies on append and import: each is refused with a code, the process lives, nothing is half written.

`make fuzz-api` tries ten thousand of each (COMPACTD_FUZZ_BODIES); the seed tells them apart (COMPACTD_FUZZ_SEED).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator

import httpx2
import pytest
from sqlalchemy import text

from compaction.settings import Settings
from compaction.store.engine import Database
from tests.integration.api.broken import Broken, broken_append, broken_import
from tests.integration.api.conftest import KEY
from tests.integration.api.serving import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BODIES = int(os.environ.get("COMPACTD_FUZZ_BODIES", "1000"))
SEED = os.environ.get("COMPACTD_FUZZ_SEED", "20261130")
AT_ONCE = 8  # requests under way together: what one leaves behind another may trip over
STEP = 100  # bodies between two looks at the database
SESSION = "/v1/sessions/fuzzed"
COUNTS = (  # what a body could leave behind
    "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM sessions), (SELECT count(*) FROM idempotency_keys), "
    "(SELECT coalesce(sum(head_seq), 0)::bigint FROM sessions), "
    "(SELECT coalesce(sum(length(body)), 0)::bigint FROM messages)"
)

Counts = tuple[int, ...]


@pytest.fixture(scope="module")
def server(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(settings, tmp_path_factory.mktemp("broken")) as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=60) as speaking:
        assert (await speaking.put(SESSION, json={"model": "claude-haiku-4-5"})).status_code in {200, 201}
        yield speaking


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = Database(settings.database_url, pool_size=1)
    yield opened
    await opened.close()


async def counted(database: Database) -> Counts:
    async with database.connect() as conn:
        return tuple((await conn.execute(text(COUNTS))).one())


async def tried(client: httpx2.AsyncClient, path: str, broken: Broken) -> bool:
    """Whether the body was refused; with a problem, a code and no fault of ours."""
    answer = await client.post(path, content=broken.content, headers=broken.headers, params=broken.query)
    told = (broken, answer.status_code, answer.text[:500])
    if answer.status_code == 200:
        assert not broken.surely, told
        return False
    assert 400 <= answer.status_code < 500, told
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json", told
    assert problem["code"] in {"invalid_request", "conflict", "too_large"}, told
    assert problem["status"] == answer.status_code, told
    return True


async def all_tried(
    client: httpx2.AsyncClient, database: Database, path: str, make: Callable[[random.Random], Broken]
) -> int:
    """How many of BODIES were refused. What is surely broken is tried in one go, between two equal counts."""
    dice = random.Random(f"{SEED} {path}")
    bodies = [make(dice) for _ in range(BODIES)]
    surely = [broken for broken in bodies if broken.surely]
    refused = 0
    for start in range(0, len(surely), STEP):
        before = await counted(database)
        refused += await together(client, path, surely[start : start + STEP])
        assert await counted(database) == before
    for broken in bodies:
        if not broken.surely:
            before = await counted(database)
            if await tried(client, path, broken):
                refused += 1
                assert await counted(database) == before, broken
    return refused


async def together(client: httpx2.AsyncClient, path: str, bodies: list[Broken]) -> int:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(broken: Broken) -> bool:
        async with turns:
            return await tried(client, path, broken)

    return sum(await asyncio.gather(*map(one, bodies)))


@pytest.mark.timeout(120 + BODIES)
async def test_broken_appends_are_refused_and_leave_nothing(
    server: Server, client: httpx2.AsyncClient, database: Database
) -> None:
    refused = await all_tried(client, database, f"{SESSION}/messages", broken_append)
    assert refused >= BODIES * 3 // 4  # the others were damaged and still valid
    assert server.process.poll() is None


@pytest.mark.timeout(120 + BODIES)
async def test_broken_imports_are_refused_and_leave_nothing(
    server: Server, client: httpx2.AsyncClient, database: Database
) -> None:
    refused = await all_tried(client, database, "/v1/sessions/import", broken_import)
    assert refused >= BODIES * 3 // 4
    assert server.process.poll() is None


async def test_no_broken_body_is_a_fault_in_the_log(server: Server) -> None:
    """After the others of this module."""
    assert [line for line in server.lines() if line.get("level") == "error"] == []


async def test_after_all_of_them_a_good_body_is_stored(client: httpx2.AsyncClient) -> None:
    before = (await client.get(SESSION)).json()["head_seq"]
    answer = await client.post(f"{SESSION}/messages", json={"messages": [{"role": "user", "content": "Still there?"}]})
    assert answer.json()["head_seq"] == before + 1
