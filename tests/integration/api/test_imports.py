from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import httpx2
import pytest

from compaction import formats
from compaction.cli.sample import sample_session

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
