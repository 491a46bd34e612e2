from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from compaction.client import Client, Closed, Refused, Stale, TimedOut, Unreachable
from compaction.client import client as client_module
from compaction.client import http as client_http

pytestmark = pytest.mark.anyio

Answer = Callable[[httpx2.Request], httpx2.Response]


class Api:
    """Gives prepared answers in turn and remembers the requests."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def speaking_to(api: Api) -> AsyncIterator[Client]:
    async with Client("http://api", "ck_key", transport=httpx2.MockTransport(api)) as client:
        yield client


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_http, "FIRST_PAUSE_SECONDS", 0.0)


def job(**changes: object) -> dict[str, Any]:
    return {"id": "j1", "status": "queued", "done": False, **changes}


async def test_a_job_is_enqueued_under_an_idempotency_key_of_its_own() -> None:
    api = Api(httpx2.Response(202, json=job()))
    async with speaking_to(api) as client:
        await client.enqueue("s1", trigger="manual", instructions="Keep it.")
        await client.enqueue("s1")
        await client.enqueue("s1", idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in api.requests]
    assert keys[2] == "mine"
    assert len(set(keys)) == 3
    assert json.loads(api.requests[0].content) == {
        "session_id": "s1",
        "trigger": "manual",
        "instructions": "Keep it.",
    }
    assert api.requests[0].headers["Authorization"] == "Bearer ck_key"


async def test_a_busy_api_is_asked_again_with_the_same_request() -> None:
    busy = httpx2.Response(503, headers={"Retry-After": "0"}, json={"code": "unavailable", "detail": "Busy."})
    api = Api(busy, httpx2.ConnectError("no"), httpx2.Response(202, json=job()))
    async with speaking_to(api) as client:
        assert (await client.enqueue("s1"))["id"] == "j1"
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1


async def test_an_api_that_stays_busy_or_away_is_told() -> None:
    async with speaking_to(Api(httpx2.Response(503, json={"code": "unavailable", "detail": "Busy."}))) as client:
        with pytest.raises(Refused, match="Busy"):
            await client.session("s1")
    async with speaking_to(Api(httpx2.ConnectError("no"))) as client:
        with pytest.raises(Unreachable, match="http://api"):
            await client.session("s1")


async def test_a_refusal_carries_the_problem() -> None:
    problem = {
        "status": 422,
        "code": "invalid_request",
        "detail": "Wrong.",
        "request_id": "r1",
        "errors": [{"path": "trigger", "problem": "odd"}],
    }
    api = Api(httpx2.Response(422, json=problem))
    async with speaking_to(api) as client:
        with pytest.raises(Refused) as caught:
            await client.enqueue("s1")
    assert (caught.value.status, caught.value.code, caught.value.request_id) == (422, "invalid_request", "r1")
    assert str(caught.value) == "Wrong.\n  trigger: odd"
    assert len(api.requests) == 1


@pytest.mark.parametrize("content", [b"", b"<html>Bad gateway</html>", b"[1]", b"\xff"])
async def test_an_answer_of_something_else_is_a_refusal_too(content: bytes) -> None:
    async with speaking_to(Api(httpx2.Response(502, content=content))) as client:
        with pytest.raises(Refused) as caught:
            await client.session("s1")
    assert caught.value.status == 502


async def test_waiting_polls_until_the_job_has_ended() -> None:
    states = [job(), job(status="running"), job(status="succeeded", done=True)]
    api = Api(*(httpx2.Response(200, json=state, headers={"Preference-Applied": "wait=25"}) for state in states))
    async with speaking_to(api) as client:
        assert (await client.wait("j1"))["status"] == "succeeded"
    assert [request.headers.get("Prefer") for request in api.requests] == [None, "wait=25", "wait=25"]


async def test_waiting_ends_when_the_time_is_over() -> None:
    async with speaking_to(Api(httpx2.Response(200, json=job()))) as client:
        with pytest.raises(TimedOut):
            await client.wait("j1", timeout_seconds=0.01)


async def test_names_are_quoted_in_addresses() -> None:
    api = Api(httpx2.Response(404, json={"code": "not_found", "detail": "No."}))
    async with speaking_to(api) as client:
        with pytest.raises(Refused):
            await client.session("../api-keys?x=1")
        with pytest.raises(Refused):
            await client.context("..")
    assert api.requests[0].url.raw_path == b"/v1/sessions/..%2Fapi-keys%3Fx%3D1"
    assert api.requests[1].url.raw_path == b"/v1/sessions/%2E%2E/context"


async def test_an_import_streams_the_file_and_tells_its_progress(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"x" * 600_000)
    lines = [
        {"progress": {"done_bytes": 1, "total_bytes": 2}},
        {"imported": {"session_id": "s1", "head_seq": 3, "appended": 3, "duplicates": 0, "report": {}}},
    ]
    api = Api(httpx2.Response(200, content="".join(json.dumps(line) + "\n" for line in lines)))
    told: list[tuple[str, int, int]] = []
    async with speaking_to(api) as client:
        imported = await client.import_transcript(path, on_progress=lambda *state: told.append(state))
    assert imported["session_id"] == "s1"
    assert api.requests[0].content == path.read_bytes()
    assert api.requests[0].headers["Content-Length"] == "600000"
    assert told[-2:] == [("sending", 600_000, 600_000), ("reading", 1, 2)]


async def test_an_import_that_is_refused_halfway_raises_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"x")
    line = json.dumps({"problem": {"status": 422, "code": "invalid_request", "detail": "Unknown format."}})
    async with speaking_to(Api(httpx2.Response(200, content=line))) as client:
        with pytest.raises(Refused, match="Unknown format"):
            await client.import_transcript(path)


async def test_an_import_whose_answer_breaks_off_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"x")
    async with speaking_to(Api(httpx2.Response(200, content=b""))) as client:
        with pytest.raises(Unreachable):
            await client.import_transcript(path)


async def test_what_may_have_been_done_when_the_connection_broke_is_asked_for_until_it_is_known() -> None:
    conflict = httpx2.Response(409, json={"code": "conflict", "detail": "The first one is at work."})
    api = Api(httpx2.ReadError("gone"), conflict, httpx2.Response(202, json=job()))
    async with speaking_to(api) as client:
        assert (await client.enqueue("s1"))["id"] == "j1"
    assert len(api.requests) == 3
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1


async def test_a_conflict_of_its_own_is_told_at_once() -> None:
    api = Api(httpx2.Response(409, json={"code": "conflict", "detail": "The head is 7."}))
    async with speaking_to(api) as client:
        with pytest.raises(Refused, match="The head is 7"):
            await client.append("s1", [], expected_seq=3)
    assert len(api.requests) == 1


async def test_every_post_has_a_key_of_its_own_and_nothing_else_has() -> None:
    api = Api(httpx2.Response(200, json=job(session_id="s1")))
    async with speaking_to(api) as client:
        await client.append("s1", [{"role": "user", "content": "a"}])
        await client.append("s1", [{"role": "user", "content": "a"}])
        await client.cancel("j1")
        await client.put_session("s1", model="m")
        await client.job("j1")
    keys = [request.headers.get("Idempotency-Key") for request in api.requests]
    assert len(set(keys[:3])) == 3
    assert keys[3:] == [None, None]


async def test_an_api_that_never_takes_it_is_asked_no_more_often_than_said() -> None:
    api = Api(httpx2.Response(429, json={"code": "rate_limited"}))
    async with Client("http://api", "ck_x", max_tries=2, transport=httpx2.MockTransport(api)) as client:
        with pytest.raises(Refused):
            await client.session("s1")
    assert len(api.requests) == 2


async def test_where_long_polls_are_cut_off_it_looks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "POLL_SECONDS", 0.0)
    cut = httpx2.Response(504, content=b"gateway timeout")
    states = [httpx2.Response(200, json=job()) for _ in range(3)]
    api = Api(states[0], cut, states[1], states[2], httpx2.Response(200, json=job(status="failed", done=True)))
    async with Client("http://api", "ck_x", max_tries=1, transport=httpx2.MockTransport(api)) as client:
        assert (await client.wait("j1"))["status"] == "failed"
    assert [request.headers.get("Prefer") for request in api.requests] == [None, "wait=25", None, None, None]


async def test_a_longer_copy_is_applied_by_what_the_result_covers_of_it() -> None:
    stale = httpx2.Response(409, json={"code": "stale", "length": 1, "first_differing_index": 1})
    api = Api(stale, httpx2.Response(200, json={"api_messages": []}))
    held = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    async with speaking_to(api) as client:
        await client.apply("j1", held)
    first, second = (json.loads(request.content) for request in api.requests)
    assert first["prefix_hash"] == first["hashes"][-1]
    assert second == {"prefix_hash": first["hashes"][0]}


async def test_another_copy_is_stale_and_says_where() -> None:
    api = Api(httpx2.Response(409, json={"code": "stale", "length": 2, "first_differing_index": 1}))
    async with speaking_to(api) as client:
        with pytest.raises(Stale) as caught:
            await client.apply("j1", [{"role": "user", "content": "a"}])
    assert (caught.value.length, caught.value.first_differing_index, len(api.requests)) == (2, 1, 1)


async def test_a_service_that_is_not_ready_is_no_refusal() -> None:
    async with speaking_to(Api(httpx2.Response(503, json={"status": "unready", "parts": {}}))) as client:
        assert (await client.readiness())["status"] == "unready"


async def test_after_closing_every_call_says_so() -> None:
    client = Client("http://api", "ck_x", transport=httpx2.MockTransport(Api(httpx2.Response(200, json=job()))))
    await client.close()
    with pytest.raises(Closed):
        await client.job("j1")
    with pytest.raises(Closed):
        await client.import_transcript(b"x")
    with pytest.raises(Closed):
        await anext(client.iter_events("j1"))
