"""Bodies of millions of tiny JSON values: refused before they are decoded; the memory of the process is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from compaction.core.json_values import MAX_BODY_VALUES, MAX_MESSAGE_VALUES
from compaction.settings import Settings
from compaction.store import sessions
from compaction.store.engine import Database
from compaction.store.sessions import NewMessage
from ops.bench.meter import Meter
from tests.integration.api.conftest import KEY
from tests.integration.api.serving import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CROWD = b"[" + b"{}," * 19_000_000 + b"{}]"  # 57 MB; decoded they are 1.4 GB at the least
GROWTH_BOUND_BYTES = 400 * 2**20  # the body itself a few times, and what a body of the allowed crowd becomes
SESSION = "/v1/sessions/crowded"


@pytest.fixture(scope="module")
def server(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    default = {"COMPACTD_MAX_BODY_BYTES": str(64 * 2**20)}
    with serving(settings, tmp_path_factory.mktemp("crowded"), **default) as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=120) as speaking:
        assert (await speaking.put(SESSION, json={"model": "claude-haiku-4-5"})).status_code in {200, 201}
        yield speaking


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """Fails the test when the server's memory grew over the bound meanwhile."""
    measured = Meter(server.process.pid)
    measured.forget_peak()
    before = measured.rss_bytes()
    yield measured
    grown = measured.peak_bytes() - before
    assert grown < GROWTH_BOUND_BYTES


def told(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def crowd_stored(settings: Settings, name: str, *bodies: bytes) -> None:
    """Stored as a version did that took any number of values."""
    database = Database(settings.database_url, pool_size=1)
    try:
        async with database.begin() as conn:
            row = await sessions.put(conn, 1, name, model="claude-haiku-4-5")
            batch = [NewMessage(body=body, uuid=None, role="user", partial=False, starts_live=False) for body in bodies]
            await sessions.append(conn, row.id, batch)
    finally:
        await database.close()


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", "/v1/compactions", b'{"session_id":"crowded","metadata":{"a":' + CROWD + b"}}"),
        ("PUT", SESSION, b'{"tools":' + CROWD + b"}"),
        ("PUT", SESSION, b'{"tools":' + CROWD[:6_000_000] + b"{}]}"),
        ("PUT", f"{SESSION}/state/files/a", CROWD[:6_000_000] + b"{}]"),
        ("POST", f"{SESSION}/messages", b'{"messages":' + CROWD + b"}"),
        ("POST", f"{SESSION}/messages", b'{"messages":[{"role":"user","content":' + CROWD + b"}]}"),
        ("POST", f"{SESSION}/messages", b"{" + b'"a":1,' * 9_000_000 + b'"b":1}'),
        ("POST", "/v1/sessions/import", CROWD),
        ("POST", "/v1/sessions/import", b'{"messages":' + CROWD + b"}"),
    ],
    ids=["job", "tools", "small tools", "state", "messages", "one message", "members", "document", "object"],
)
async def test_a_crowd_is_refused_before_it_takes_memory(
    client: httpx2.AsyncClient, meter: Meter, method: str, path: str, content: bytes
) -> None:
    assert told(await client.request(method, path, content=content)) == (413, "too_large")


async def test_a_crowd_in_a_line_of_an_import_is_passed_over_and_told(client: httpx2.AsyncClient, meter: Meter) -> None:
    line = b'{"type":"user","uuid":"u%d","sessionId":"crowd","message":{"role":"user","content":%s}}\n'
    log = line % (1, CROWD[:30_000_000] + b"{}]") + line % (2, b'"Hi"')
    answer = await client.post("/v1/sessions/import", content=log)
    assert answer.status_code == 200, answer.text
    assert answer.json()["appended"] == 1
    assert answer.json()["report"]["malformed"]["oversized_lines"] == 1


async def test_a_message_has_a_limit_of_its_own(client: httpx2.AsyncClient, meter: Meter) -> None:
    crowd = b"[" + b"{}," * (MAX_MESSAGE_VALUES // 2) + b"{}]"
    answer = await client.post(
        f"{SESSION}/messages", content=b'{"messages":[{"role":"user","content":"Hi","metadata":{"a":' + crowd + b"}}]}"
    )
    assert told(answer) == (422, "invalid_request")
    assert answer.json()["errors"][0]["path"] == "messages[0]"


async def test_long_texts_full_of_marks_pass(client: httpx2.AsyncClient, meter: Meter) -> None:
    text = "one, two: [three], {four}. " * 2_000_000  # 54 MB, 12 million marks
    answer = await client.post(f"{SESSION}/messages", json={"messages": [{"role": "user", "content": text}]})
    assert answer.status_code == 200, answer.text


async def test_the_largest_crowd_that_is_taken_fits_in_memory(client: httpx2.AsyncClient, meter: Meter) -> None:
    one = b'{"role":"user","content":"Hi","metadata":{"a":[' + b'{"b":0},' * 30_000 + b"0]}}"  # 90,000 marks and some
    batch = b'{"messages":[' + b",".join([one] * (MAX_BODY_VALUES // 91_000)) + b"]}"
    answer = await client.post("/v1/sessions/crowd-of-many/messages", content=batch)
    assert answer.status_code == 404
    await client.put("/v1/sessions/crowd-of-many", json={"model": "claude-haiku-4-5"})
    for _ in range(3):
        assert (await client.post("/v1/sessions/crowd-of-many/messages", content=batch)).status_code == 200
    for path in ("messages?view=api", "messages", "context", ""):
        answer = await client.get(f"/v1/sessions/crowd-of-many/{path}".rstrip("/"))
        assert answer.status_code == 200, answer.text[:500]


async def test_a_crowd_that_was_stored_is_not_decoded(
    client: httpx2.AsyncClient, settings: Settings, meter: Meter
) -> None:
    await crowd_stored(settings, "old", b'{"role":"user","content":"Hi","metadata":{"a":' + CROWD + b"}}")
    for path in ("messages?view=api", "messages?view=live", "context", ""):
        answer = await client.get(f"/v1/sessions/old/{path}".rstrip("/"))
        assert told(answer) == (413, "too_large")
    async with client.stream("GET", "/v1/sessions/old/messages?view=full") as answer:
        assert answer.status_code == 200
        assert sum([len(piece) async for piece in answer.aiter_bytes()]) > len(CROWD)
