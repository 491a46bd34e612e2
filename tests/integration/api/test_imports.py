from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from api import imports
from api.imports import Import
from compaction import formats
from compaction.cli.sample import sample_session
from compaction.errors import Unavailable
from compaction.store.engine import Connection, Database
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

IMPORT = "/v1/sessions/import"
LINES = {"Accept": "application/x-ndjson"}


def row(number: int, parent: int | None, role: str, text: str) -> dict[str, object]:
    """A line of a Claude Code log."""
    return {
        "type": role,
        "uuid": f"uuid-{number}",
        "parentUuid": None if parent is None else f"uuid-{parent}",
        "sessionId": "11111111-2222-3333-4444-555555555555",
        "timestamp": f"2026-01-01T00:00:0{number}.000Z",
        "isSidechain": False,
        "message": {"role": role, "content": text, **({"model": "claude-haiku-4-5"} if role == "assistant" else {})},
    }


ROWS = [row(1, None, "user", "Hi"), row(2, 1, "assistant", "Hello"), row(3, 2, "user", "Go on")]


def log(*rows: dict[str, object]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in rows)


async def test_a_transcript_becomes_a_session_with_a_report(client: httpx2.AsyncClient) -> None:
    answer = await client.post(IMPORT, content=log(*ROWS))
    assert answer.status_code == 200, answer.text
    done = answer.json()
    assert done["session_id"] == "11111111-2222-3333-4444-555555555555"
    assert (done["head_seq"], done["appended"], done["duplicates"]) == (3, 3, 0)
    assert (done["report"]["format"], done["report"]["lines"]) == ("claude_code", 3)
    session = (await client.get(f"/v1/sessions/{done['session_id']}")).json()
    assert (session["model"], session["head_seq"]) == ("claude-haiku-4-5", 3)


async def test_importing_again_adds_only_what_is_new(client: httpx2.AsyncClient) -> None:
    await client.post(IMPORT, content=log(*ROWS[:2]))
    done = (await client.post(IMPORT, content=log(*ROWS))).json()
    assert (done["head_seq"], done["appended"], done["duplicates"]) == (3, 1, 2)


async def contents(client: httpx2.AsyncClient, session: str, view: str) -> list[str]:
    """What the messages of a view say, blocks as their text."""
    data = (await client.get(f"/v1/sessions/{session}/messages", params={"view": view})).json()["data"]
    return [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in data]


async def test_after_a_rewind_the_live_view_follows_the_new_branch_and_the_full_one_keeps_both(
    client: httpx2.AsyncClient,
) -> None:
    old = [*ROWS, row(4, 3, "assistant", "The wrong way")]
    mine = {"session_id": "rewound"}
    await client.post(IMPORT, params=mine, content=log(*old))
    rewound = [*old, row(5, 2, "user", "Another way"), row(6, 5, "assistant", "Gladly")]
    done = (await client.post(IMPORT, params=mine, content=log(*rewound))).json()
    assert (done["appended"], done["duplicates"]) == (2, 2)
    assert await contents(client, "rewound", "live") == ["Hi", "Hello", "Another way", "Gladly"]
    assert await contents(client, "rewound", "api") == ["Hi", "Hello", "Another way", "Gladly"]
    everything = ["Hi", "Hello", "Go on", "The wrong way", "Another way", "Gladly"]
    assert await contents(client, "rewound", "full") == everything

    back = [*rewound, row(7, 4, "user", "It was right")]
    await client.post(IMPORT, params=mine, content=log(*back))
    assert await contents(client, "rewound", "live") == ["Hi", "Hello", "Go on", "The wrong way", "It was right"]
    assert await contents(client, "rewound", "full") == [*everything, "It was right"]


@dataclasses.dataclass
class BreakingDatabase:
    """A database that is away from its transaction number `last` + 1 on, and sees that nobody holds a session."""

    inner: Database
    last: int
    begun: int = 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Connection]:
        self.begun += 1
        if self.begun > self.last:
            raise Unavailable
        async with self.inner.begin() as other:  # raises Unavailable where an import still holds a row
            await other.exec_driver_sql("SELECT id FROM sessions FOR UPDATE NOWAIT")
        async with self.inner.begin() as conn:
            yield conn


async def test_an_import_that_breaks_off_is_completed_by_the_next_and_holds_its_session_for_a_batch_at_most(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    many = [row(1, None, "user", "0")]
    many += [row(n, n - 1, "assistant" if n % 2 == 0 else "user", str(n)) for n in range(2, 1_202)]
    mine = {"session_id": "broken-off"}
    tenant_id = await _tenant_of(app, client, mine["session_id"])
    held = app.state.services
    away = BreakingDatabase(database_of(app), last=3)  # the session's own, and two batches of 500
    wanted = Import(tenant_id=tenant_id, session_id=mine["session_id"])
    with pytest.raises(Unavailable, match="after 1000 messages"):
        await imports.store(dataclasses.replace(held, database=away), io.BytesIO(log(*many)), wanted)
    done = (await client.post(IMPORT, params=mine, content=log(*many))).json()
    assert (done["duplicates"], done["appended"], done["head_seq"]) == (1_000, 201, 1_201)


async def _tenant_of(app: FastAPI, client: httpx2.AsyncClient, session: str) -> int:
    """The caller's tenant, told by a session made for it."""
    assert (await client.put(f"/v1/sessions/{session}", json={"model": "m"})).status_code in {200, 201}
    async with database_of(app).begin() as conn:
        found = await conn.exec_driver_sql("SELECT tenant_id FROM sessions WHERE name = %s", (session,))
        tenant_id = found.scalar_one()
    assert isinstance(tenant_id, int)
    return tenant_id


async def test_the_session_id_can_be_given(client: httpx2.AsyncClient) -> None:
    done = (await client.post(IMPORT, params={"session_id": "mine"}, content=log(*ROWS))).json()
    assert done["session_id"] == "mine"
    assert (await client.get("/v1/sessions/mine")).json()["head_seq"] == 3


async def test_a_packed_transcript_is_unpacked(client: httpx2.AsyncClient) -> None:
    answer = await client.post(IMPORT, content=gzip.compress(log(*ROWS)), headers={"Content-Encoding": "gzip"})
    assert answer.json()["appended"] == 3


@pytest.mark.parametrize(
    ("content", "coding", "status", "code"),
    [
        (b"not gzip", "gzip", 400, "invalid_request"),
        (gzip.compress(b"x" * 1_000, mtime=0)[:-5], "gzip", 400, "invalid_request"),
        (gzip.compress(b"\0" * 200_000_000, 1, mtime=0), "gzip", 413, "too_large"),
        (b"x", "br", 415, "invalid_request"),
        (b"x" * (9 * 2**20), "identity", 413, "too_large"),
        (b"", "identity", 422, "invalid_request"),
        (b"what is this?\n", "identity", 422, "invalid_request"),
        (b"\0" * 10_000, "identity", 422, "invalid_request"),
        (b"[" * 200_000, "identity", 422, "invalid_request"),
        (b'{"type":"summary","summary":"x","leafUuid":"y"}\n', "identity", 422, "invalid_request"),
    ],
)
async def test_what_is_no_transcript_is_refused_and_nothing_is_stored(
    client: httpx2.AsyncClient, content: bytes, coding: str, status: int, code: str
) -> None:
    headers = {"Content-Encoding": coding}
    answer = await client.post(IMPORT, params={"session_id": "none"}, content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (await client.get("/v1/sessions/none")).status_code == 404


@pytest.mark.parametrize("query", ["format=fax", "session_id=a%20b", "model="])
async def test_wrong_parameters_are_named(client: httpx2.AsyncClient, query: str) -> None:
    answer = await client.post(f"{IMPORT}?{query}", content=log(*ROWS))
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == query.split("=", maxsplit=1)[0]


async def test_progress_comes_as_lines_that_end_with_the_outcome(client: httpx2.AsyncClient) -> None:
    answer = await client.post(IMPORT, content=b"".join(sample_session()), headers=LINES)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[-1]["imported"]["appended"] > 200
    assert all(set(line) == {"progress"} for line in lines[:-1])


async def test_a_refusal_after_progress_is_the_last_line(client: httpx2.AsyncClient) -> None:
    answer = await client.post(IMPORT, content=b"what is this?\n", headers=LINES)
    last = json.loads(answer.text.splitlines()[-1])
    assert (last["problem"]["status"], last["problem"]["code"]) == (422, "invalid_request")


async def test_real_transcripts_come_back_byte_by_byte(client: httpx2.AsyncClient, repository: Path) -> None:
    folder = Path(os.environ.get("COMPACTD_TEST_TRANSCRIPTS", repository.parent / "shared" / "transcripts"))
    paths = sorted((folder / "claude_code").rglob("*.jsonl"))
    if not paths:
        pytest.skip("the collection of real transcripts is not on this machine")
    stored = 0
    for path in paths:
        answer = await client.post(IMPORT, content=path.read_bytes())
        if answer.status_code == 422:  # a log without a conversation
            continue
        assert answer.status_code == 200, (path.name, answer.text)
        with path.open("rb") as file:
            bodies = list(formats.read(file).bodies())
        view = {"view": "full"}
        full = await client.get(f"/v1/sessions/{answer.json()['session_id']}/messages", params=view)
        assert full.content == b'{"data":[' + b",".join(bodies) + b'],"next_cursor":null,"has_more":false}', path.name
        stored += 1
    assert stored
