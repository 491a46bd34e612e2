from __future__ import annotations

import json

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store import sessions
from compaction.store.jobs import Finish
from compaction.store.results import encode_result
from tests.integration.api import stage

pytestmark = pytest.mark.anyio

FORMATS = ("envelopes", "anthropic", "openai", "claude_code")


@pytest.fixture
async def job_id(client: httpx2.AsyncClient) -> str:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    await client.post("/v1/sessions/s1/messages", json={"messages": turns})
    job_id: str = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    return job_id


async def test_a_result_holds_the_messages_in_their_one_order(
    app: FastAPI, client: httpx2.AsyncClient, job_id: str
) -> None:
    await stage.succeed(app, job_id)
    result = (await client.get(f"/v1/compactions/{job_id}/result")).json()
    assert set(result) == {  # DESIGN §5
        "job_id",
        "session_id",
        "strategy",
        "boundary",
        "messages",
        "api_messages",
        "pre_tokens",
        "post_tokens",
        "usage",
        "cost_usd",
        "ptl_attempts",
        "dropped",
        "context_management",
        "covers_through_seq",
        "prefix_hash",
        "degraded",
        "hook_results",
        "attachments",
        "created_at",
    }
    assert [message["uuid"] for message in result["messages"]] == ["b-1", "s-1", "k-1", "a-1"]
    assert result["boundary"] == result["messages"][0]
    assert result["boundary"]["metadata"]["kind"] == "compact_boundary"
    assert [message["uuid"] for message in result["attachments"]] == ["a-1"]
    assert result["api_messages"][0]["role"] == "user"
    assert all(set(message) == {"role", "content"} for message in result["api_messages"])
    assert (result["pre_tokens"], result["post_tokens"], result["covers_through_seq"]) == (1_000, 100, 2)
    assert result["usage"]["input_tokens"] == 900
    assert result["dropped"] == {"rounds": 0, "messages": 0, "tokens": 0}
    assert (result["job_id"], result["session_id"]) == (job_id, "s1")


async def test_no_result_yet_says_that_the_job_runs(app: FastAPI, client: httpx2.AsyncClient, job_id: str) -> None:
    answer = await client.get(f"/v1/compactions/{job_id}/result")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "queued" in answer.json()["detail"]
    await stage.claimed(app, job_id)
    assert "running" in (await client.get(f"/v1/compactions/{job_id}/result")).json()["detail"]


async def test_a_skipped_job_has_no_result_and_says_why(app: FastAPI, client: httpx2.AsyncClient, job_id: str) -> None:
    await stage.skip(app, job_id, "below_threshold")
    answer = await client.get(f"/v1/compactions/{job_id}/result")
    assert answer.status_code == 404
    assert "below_threshold" in answer.json()["detail"]


async def test_a_failed_or_cancelled_job_has_no_result_and_says_why(
    app: FastAPI, client: httpx2.AsyncClient, job_id: str
) -> None:
    await stage.fail(app, job_id, "refusal")
    assert "refusal" in (await client.get(f"/v1/compactions/{job_id}/result")).json()["detail"]
    other = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    await client.post(f"/v1/compactions/{other}/cancel")
    assert "cancelled" in (await client.get(f"/v1/compactions/{other}/result")).json()["detail"]


async def test_the_timeline_of_a_job_is_read_in_pages(app: FastAPI, client: httpx2.AsyncClient, job_id: str) -> None:
    await stage.succeed(app, job_id)
    path = f"/v1/compactions/{job_id}/events"
    everything = (await client.get(path)).json()
    types = [event["type"] for event in everything["data"]]
    assert "tengu_compact" in types
    seen, cursor = [], None
    while True:
        page = (await client.get(path, params={"limit": 1, **({"cursor": cursor} if cursor else {})})).json()
        seen += [event["type"] for event in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == types


async def test_a_result_that_is_known_is_not_sent_again(app: FastAPI, client: httpx2.AsyncClient, job_id: str) -> None:
    await stage.succeed(app, job_id)
    first = await client.get(f"/v1/compactions/{job_id}/result")
    known = {"If-None-Match": f'"other", {first.headers["ETag"]}'}
    again = await client.get(f"/v1/compactions/{job_id}/result", headers=known)
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    other = await client.get(f"/v1/compactions/{job_id}/result", headers={"If-None-Match": '"other"'})
    assert other.json() == first.json()


async def test_each_format_is_a_document_of_its_own_with_an_etag_of_its_own(
    app: FastAPI, client: httpx2.AsyncClient, job_id: str
) -> None:
    """The stage's result: a summary, a kept answer and an attachment, of a session that has a prompt and a tool."""
    tool = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}
    search = {"type": "web_search_20250305", "name": "web_search"}
    told = {"system": "You are careful.", "tools": [tool, search]}
    await client.put("/v1/sessions/s1", json=told)
    await stage.succeed(app, job_id)
    path = f"/v1/compactions/{job_id}/result"
    answers = {name: await client.get(path, params={"format": name}) for name in FORMATS}

    assert answers["envelopes"].json() == (await client.get(path)).json()
    turns = [
        {"role": "user", "content": "Summary: so far so good."},
        {"role": "assistant", "content": [{"type": "text", "text": "Going on."}]},
        {"role": "user", "content": "The file again."},
    ]
    assert answers["anthropic"].json() == {"model": "claude-haiku-4-5", **told, "messages": turns}
    assert answers["openai"].json() == {
        "model": "claude-haiku-4-5",
        "tools": [
            {
                "type": "function",
                "function": {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}},
            }
        ],
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Summary: so far so good."},
            {"role": "assistant", "content": "Going on."},
            {"role": "user", "content": "The file again."},
        ],
    }
    rows = [json.loads(line) for line in answers["claude_code"].text.splitlines()]
    assert [row["type"] for row in rows] == ["system", "user", "assistant", "user"]
    assert [row["parentUuid"] for row in rows] == [None, *(row["uuid"] for row in rows[:-1])]
    assert {row["sessionId"] for row in rows} == {"s1"}

    types = {name: answer.headers["Content-Type"].partition(";")[0] for name, answer in answers.items()}
    assert types == dict.fromkeys(FORMATS, "application/json") | {"claude_code": "application/x-ndjson"}
    tags = [answer.headers["ETag"] for answer in answers.values()]
    assert len(set(tags)) == len(FORMATS)
    for name, tag in zip(FORMATS, tags, strict=True):
        again = await client.get(path, params={"format": name}, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")


async def test_the_log_goes_on_behind_the_last_message_that_the_result_covers(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    """Not behind a half streamed one, a marker, or what came later."""
    await client.put("/v1/sessions/s2", json={"model": "claude-haiku-4-5"})
    turns = [
        {"uuid": "m1", "role": "user", "content": "Hi"},
        {"uuid": "m2", "role": "assistant", "content": "Hello"},
        {"uuid": "x1", "role": "system", "content": "", "metadata": {"kind": "microcompact_boundary"}},
        {"uuid": "m3", "role": "assistant", "content": "Hel", "partial": True},
    ]
    await client.post("/v1/sessions/s2/messages", json={"messages": turns})
    job_id = (await client.post("/v1/compactions", json={"session_id": "s2"})).json()["id"]
    await stage.succeed(app, job_id)
    later = [{"uuid": "m4", "role": "user", "content": "And now?"}]
    await client.post("/v1/sessions/s2/messages", json={"messages": later})
    rows = (await client.get(f"/v1/compactions/{job_id}/result", params={"format": "claude_code"})).text.splitlines()
    assert json.loads(rows[0])["logicalParentUuid"] == "m2"


async def test_the_log_does_not_go_on_behind_what_the_user_took_back(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s3", json={"model": "claude-haiku-4-5"})
    turns = [
        {"uuid": f"m{number}", "role": ("assistant", "user")[number % 2], "content": "So."} for number in (1, 2, 3)
    ]
    await client.post("/v1/sessions/s3/messages", json={"messages": turns})
    job_id = (await client.post("/v1/compactions", json={"session_id": "s3"})).json()["id"]
    claim = await stage.claimed(app, job_id)
    async with stage.database_of(app).begin() as conn:
        await sessions.follow(conn, claim.session.id, left=["m3"], taken=())
    result = encode_result(stage.a_result(job_id, claim.covers_through_seq))
    await stage.finish(app, claim, Finish(status="succeeded", was_compacted=True, result=result))
    rows = (await client.get(f"/v1/compactions/{job_id}/result", params={"format": "claude_code"})).text.splitlines()
    assert json.loads(rows[0])["logicalParentUuid"] == "m2"


async def test_an_unknown_format_is_refused_by_name(client: httpx2.AsyncClient, job_id: str) -> None:
    answer = await client.get(f"/v1/compactions/{job_id}/result", params={"format": "yaml"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "format" in answer.json()["errors"][0]["path"]


async def test_a_job_without_a_result_has_none_in_any_format(client: httpx2.AsyncClient, job_id: str) -> None:
    for name in FORMATS:
        answer = await client.get(f"/v1/compactions/{job_id}/result", params={"format": name})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
