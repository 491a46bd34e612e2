"""Inline jobs: messages that come with the request become a job of its own, in whatever format they are written."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.core import jsonbytes
from compaction.store import jobs, sessions
from compaction.store.retention import DAY_SECONDS, prune_ephemeral_sessions
from compaction.store.tenants import SCOPES
from tests.integration.api import stage
from tests.integration.api.conftest import KEY, RememberingDoorbell, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

JOBS = "/v1/compactions"
MODEL = "claude-haiku-4-5"
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "Why does the build fail?"},
    {"role": "assistant", "content": [{"type": "text", "text": "A test is red."}]},
]
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Answer in one line."},
    {"role": "user", "content": "Which file is it?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
    {"role": "developer", "content": "Name no people."},
    {"role": "assistant", "content": "a.py"},
]
LOG: list[dict[str, Any]] = [
    {
        "type": "user",
        "uuid": "r1",
        "parentUuid": None,
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "timestamp": "2026-11-30T08:00:00.000Z",
        "message": {"role": "user", "content": "Rename it."},
    },
    {
        "type": "assistant",
        "uuid": "r2",
        "parentUuid": "r1",
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "timestamp": "2026-11-30T08:00:01.000Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": "Renamed."}],
        },
    },
]


async def post(client: httpx2.AsyncClient, body: Any, **headers: str) -> httpx2.Response:  # noqa: ANN401 - JSON
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post(JOBS, content=content, headers={"Content-Type": "application/json", **headers})


async def accepted(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    answer = await post(client, {"model": MODEL} | body)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def stored(app: FastAPI, job_id: str) -> tuple[list[Any], dict[str, Any], sessions.SessionRow]:
    """What the worker finds: the messages, the parameters and the session."""
    claim = await stage.claimed(app, job_id)
    async with database_of(app).connect() as conn:
        view = await sessions.load_live(conn, claim.session.id, through_seq=claim.covers_through_seq)
    parameters = sessions.parameters_in(claim.parameters)
    return (
        [one.body for one in view.messages],
        {name: jsonbytes.decode(raw) for name, raw in parameters.items()},
        claim.session,
    )


async def count(app: FastAPI, query: str, *values: object) -> int:
    async with database_of(app).connect() as conn:
        found: int = (await conn.exec_driver_sql(query, values)).scalar_one()
    return found


async def session_of(app: FastAPI, job_id: str) -> int:
    return await count(app, "SELECT session_id FROM jobs WHERE id = %s", job_id)


async def problems(answer: httpx2.Response) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {one["path"]: one["problem"] for one in answer.json()["errors"]}


async def test_messages_become_a_job_that_the_workers_are_told_of(
    app: FastAPI, client: httpx2.AsyncClient, doorbell: RememberingDoorbell
) -> None:
    answer = await post(client, {"model": MODEL, "messages": TURNS, "metadata": {"asked_by": "cron"}})
    assert answer.status_code == 202
    job = answer.json()
    assert (job["session_id"], job["status"], job["trigger"]) == (None, "queued", "manual")
    assert job["metadata"] == {"asked_by": "cron"}
    assert answer.headers["Location"] == f"{JOBS}/{job['id']}"
    await app.state.services.rings.close()
    assert job["id"] in doorbell.rung


async def test_messages_are_stored_as_the_bytes_they_came_as_with_what_belongs_to_the_session(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    raw = b'{"role" : "user","content":"caf\\u00e9 \\ud83d", "uuid":"m1"}'
    body = (
        b'{"model":"claude-haiku-4-5","system":"Be brief.","tools":[{"name":"ls","input_schema":{}}],'
        b'"request":{"effort":"low"},"settings":{"context_window":30000},"query_source":"main","messages":[%s]}' % raw
    )
    answer = await post(client, body)
    assert answer.status_code == 202, answer.text
    found, parameters, session = await stored(app, answer.json()["id"])
    assert found == [raw]
    assert parameters == {
        "system": "Be brief.",
        "tools": [{"name": "ls", "input_schema": {}}],
        "request": {"effort": "low"},
    }
    assert (session.model, session.settings, session.query_source) == (MODEL, {"context_window": 30_000}, "main")


async def test_a_chat_is_told_by_its_messages_and_its_instructions_join_the_system_prompt(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters": schema}}]
    job = await accepted(client, messages=CHAT, system="You are careful.", tools=tools)
    found, parameters, _ = await stored(app, job["id"])
    assert [(one["role"], one["content"]) for one in map(json.loads, found)] == [
        ("user", "Which file is it?"),
        ("assistant", [{"type": "tool_use", "id": "call_1", "name": "ls", "input": {"path": "."}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "call_1", "content": "a.py"}]),
        ("assistant", "a.py"),
    ]
    assert parameters["system"] == "You are careful.\n\nAnswer in one line.\n\nName no people."
    assert parameters["tools"] == [{"name": "ls", "description": "Lists.", "input_schema": schema}]


async def test_system_blocks_keep_their_marks_and_the_chats_instructions_follow(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    own = [{"type": "text", "text": "You are careful.", "cache_control": {"type": "ephemeral"}}]
    job = await accepted(client, messages=CHAT[:2], system=own)
    _, parameters, _ = await stored(app, job["id"])
    assert parameters["system"] == [*own, {"type": "text", "text": "Answer in one line."}]


async def test_the_rows_of_a_log_are_its_conversation(app: FastAPI, client: httpx2.AsyncClient) -> None:
    pretty = json.dumps({"model": MODEL, "messages": [*LOG, {"type": "progress", "uuid": "p"}]}, indent=2).encode()
    answer = await post(client, pretty)
    assert answer.status_code == 202, answer.text
    found, _, _ = await stored(app, answer.json()["id"])
    assert [(one["uuid"], one["role"], one["content"]) for one in map(json.loads, found)] == [
        ("r1", "user", "Rename it."),
        ("r2", "assistant", [{"type": "text", "text": "Renamed."}]),
    ]


async def test_a_result_of_before_may_come_back_as_messages(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Envelopes with a boundary first: the live view begins there, as in a stored session."""
    first = await accepted(client, messages=TURNS)
    await stage.succeed(app, first["id"])
    result = (await client.get(f"{JOBS}/{first['id']}/result")).json()
    older = {"role": "user", "content": "What stood before."}
    job = await accepted(client, messages=[older, *result["messages"], *TURNS])
    found, _, _ = await stored(app, job["id"])
    assert len(found) == len(result["messages"]) + 2
    assert json.loads(found[0]) == result["boundary"]


async def test_two_requests_are_two_jobs(client: httpx2.AsyncClient) -> None:
    first, second = await accepted(client, messages=TURNS), await accepted(client, messages=TURNS)
    assert first["id"] != second["id"]
    assert second["coalesced"] == 0


async def test_the_same_key_gives_the_same_job_and_stores_nothing_twice(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    body = {"model": MODEL, "messages": TURNS}
    first = await post(client, body, **{"Idempotency-Key": "inline-once"})
    before = await count(app, "SELECT count(*) FROM sessions")
    again = await post(client, body, **{"Idempotency-Key": "inline-once"})
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    assert await count(app, "SELECT count(*) FROM sessions") == before
    other = await post(client, body | {"messages": TURNS[:1]}, **{"Idempotency-Key": "inline-once"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.parametrize(
    ("body", "path", "words"),
    [
        ({"messages": TURNS}, "model", "required"),
        ({"model": MODEL}, "messages", "session_id"),
        ({"model": MODEL, "messages": TURNS, "session_id": "s1"}, "messages", "does not go with"),
        ({"model": MODEL, "messages": []}, "messages", "no conversation"),
        ({"model": MODEL, "messages": "hello"}, "messages", "list"),
        ({"model": MODEL, "messages": None}, "messages", "list"),
        ({"model": MODEL, "messages": [{"role": "user"}]}, "messages[0].content", ""),
        ({"model": MODEL, "messages": [*TURNS, {"role": "robot", "content": "x"}]}, "messages[2].role", ""),
        ({"model": MODEL, "messages": [*TURNS, 7]}, "messages[2]", ""),
        ({"model": MODEL, "messages": [*CHAT, {"role": "robot", "content": "x"}]}, "messages[6].role", "developer"),
        ({"model": MODEL, "messages": [CHAT[0], {"role": "user", "content": []}]}, "messages[1].content", "nothing"),
        ({"model": MODEL, "messages": [CHAT[0]]}, "messages", "no conversation"),
        ({"model": MODEL, "messages": TURNS, "format": "claude_code"}, "messages", "no conversation"),
        ({"model": MODEL, "messages": [TURNS[0], LOG[0]]}, "messages[1].role", ""),
        ({"model": MODEL, "messages": TURNS, "format": "latin"}, "format", ""),
        ({"model": MODEL, "messages": TURNS, "colour": "red"}, "colour", "unknown"),
        ({"model": MODEL, "messages": TURNS, "system": 7}, "system", "string"),
        ({"model": MODEL, "messages": TURNS, "scope": {"kind": "up_to"}}, "scope", "uuid"),
    ],
)
async def test_what_cannot_be_compacted_is_refused_by_its_place_and_nothing_is_stored(
    app: FastAPI, client: httpx2.AsyncClient, body: dict[str, Any], path: str, words: str
) -> None:
    before = await count(app, "SELECT count(*) FROM sessions")
    found = await problems(await post(client, body))
    assert path in found, found
    assert words in found[path]
    assert await count(app, "SELECT count(*) FROM sessions") == before


async def test_too_many_messages_are_sent_to_a_stored_session(client: httpx2.AsyncClient) -> None:
    found = await problems(await post(client, {"model": MODEL, "messages": [TURNS[0]] * 10_001}))
    assert found["messages"].endswith("store a session and append them in batches")


async def test_a_body_over_the_limit_is_refused(client: httpx2.AsyncClient) -> None:
    """The limit of this application is 4 MiB."""
    answer = await post(client, {"model": MODEL, "messages": [{"role": "user", "content": "x" * (4 * 2**20)}]})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_no_call_reaches_the_session_of_an_inline_job(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Its name holds a slash: no address and no filter takes it, and no producer can create it."""
    job = await accepted(client, messages=TURNS)
    [name] = [
        name for (name,) in await rows(app, "SELECT name FROM sessions WHERE id = %s", await session_of(app, job["id"]))
    ]
    assert name.startswith("inline/")
    for address in (name, name.replace("/", "%2F")):
        assert (await client.get(f"/v1/sessions/{address}")).status_code == 404
        assert (await client.put(f"/v1/sessions/{address}", json={"model": MODEL})).status_code == 404
    assert (await client.get(JOBS, params={"session_id": name})).status_code == 422
    assert (await post(client, {"session_id": name})).status_code == 422


async def rows(app: FastAPI, query: str, *values: object) -> list[tuple[Any, ...]]:
    async with database_of(app).connect() as conn:
        return [tuple(row) for row in await conn.exec_driver_sql(query, values)]


async def test_the_job_is_listed_and_its_result_names_no_session(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    [listed] = (await client.get(JOBS)).json()["data"]
    assert (listed["id"], listed["session_id"], listed["status"]) == (job["id"], None, "succeeded")
    result = (await client.get(listed["result_url"])).json()
    assert (result["session_id"], result["covers_through_seq"]) == (None, 2)
    assert result["api_messages"][0]["role"] == "user"


async def test_a_retry_compacts_the_same_messages_again(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Not the summary of the first time: nobody goes on with an inline job's session."""
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    again = await client.post(f"{JOBS}/{job['id']}/retry")
    assert again.status_code == 202
    found, _, session = await stored(app, again.json()["id"])
    assert [json.loads(body) for body in found] == TURNS
    assert session.live_job_id is None


async def test_taking_over_is_refused_because_nothing_said_meanwhile_is_stored(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    prefix_hash = (await client.get(f"{JOBS}/{job['id']}/result")).json()["prefix_hash"]
    answer = await client.post(f"{JOBS}/{job['id']}/apply", json={"prefix_hash": prefix_hash})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "api_messages" in answer.json()["detail"]


async def test_another_tenant_reaches_nothing_of_an_inline_job(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    async with speaking_to(app, await key_of_another(app)) as intruder:
        calls = [("get", ""), ("get", "/result"), ("get", "/events"), ("post", "/cancel"), ("post", "/retry")]
        for method, rest in calls:
            answer = await intruder.request(method, f"{JOBS}/{job['id']}{rest}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), rest
            assert "build" not in answer.text
        answer = await intruder.post(f"{JOBS}/{job['id']}/apply", json={"prefix_hash": "0" * 64})
        assert answer.status_code == 404
        assert (await intruder.get(JOBS)).json()["data"] == []
    assert (await client.get(f"{JOBS}/{job['id']}")).json()["status"] == "succeeded"


async def key_of_another(app: FastAPI) -> str:
    async with speaking_to(app, KEY) as admin:
        wanted = {"tenant": "inline-intruder", "scopes": list(SCOPES)}
        key: str = (await admin.post("/v1/api-keys", json=wanted)).json()["key"]
    return key


async def test_a_job_and_its_retry_are_gone_once_retention_has_been(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Whoever asks later hears 404, as of any job that is not there."""
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    assert (await client.post(f"{JOBS}/{job['id']}/cancel")).status_code == 200
    session = await session_of(app, job["id"])
    async with database_of(app).begin() as conn:
        await conn.exec_driver_sql(
            "UPDATE sessions SET created_at = now() - interval '31 days' WHERE id = %s", (session,)
        )
        await conn.exec_driver_sql("UPDATE jobs SET ended_at = now() - interval '31 days' WHERE id = %s", (job["id"],))
        assert await prune_ephemeral_sessions(conn, 30 * DAY_SECONDS, 10) == 1
    for method, rest in [("get", ""), ("get", "/result"), ("post", "/retry")]:
        assert (await client.request(method, f"{JOBS}/{job['id']}{rest}")).status_code == 404


async def test_a_retry_that_loses_against_retention_finds_nothing(
    app: FastAPI, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is read, then it and its session are deleted, then the new job would be written."""
    job = await accepted(client, messages=TURNS)
    await stage.succeed(app, job["id"])
    read = jobs.get

    async def get(conn: Any, tenant_id: int, job_id: str) -> Any:  # noqa: ANN401 - as the original
        found = await read(conn, tenant_id, job_id)
        assert found is not None
        async with database_of(app).begin() as other:
            await other.exec_driver_sql("DELETE FROM sessions WHERE id = %s", (found.session_id,))
        return found

    monkeypatch.setattr(jobs, "get", get)
    answer = await client.post(f"{JOBS}/{job['id']}/retry", headers={"Idempotency-Key": "too-late"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_its_parameters_are_as_large_as_a_sessions_may_be(client: httpx2.AsyncClient) -> None:
    """The default is 8 MiB for system, tools and request together."""
    body = {"model": "claude-haiku-4-5", "system": "x" * (8 * 2**20), "messages": [{"role": "user", "content": "Hi."}]}
    refused = await client.post("/v1/compactions", json=body)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
