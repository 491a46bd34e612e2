from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2
import pytest
from fastapi import FastAPI

from tests.integration.api import stage

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}
USER = {"uuid": "u1", "role": "user", "content": "Hi"}
ASSISTANT = {"uuid": "a1", "role": "assistant", "content": [{"type": "text", "text": "Hello"}]}


@pytest.fixture
async def session(client: httpx2.AsyncClient) -> str:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    return "/v1/sessions/s1/messages"


async def append(client: httpx2.AsyncClient, path: str, *messages: Mapping[str, object]) -> httpx2.Response:
    return await client.post(path, json={"messages": messages})


async def test_a_batch_is_appended_and_told(client: httpx2.AsyncClient, session: str) -> None:
    answer = await append(client, session, USER, ASSISTANT)
    assert answer.status_code == 200
    assert answer.json() == {"session_id": "s1", "head_seq": 2, "appended": 2, "duplicates": 0, "replaced": 0}


async def test_a_batch_that_is_sent_twice_is_stored_once(client: httpx2.AsyncClient, session: str) -> None:
    await append(client, session, USER, ASSISTANT)
    again = (await append(client, session, USER, ASSISTANT)).json()
    assert again == {"session_id": "s1", "head_seq": 2, "appended": 0, "duplicates": 2, "replaced": 0}


async def test_the_full_view_gives_every_body_back_byte_by_byte(client: httpx2.AsyncClient, session: str) -> None:
    bodies = [
        b'{"role" : "user",  "content":"spaces \\u00e9 and \xc3\xa9", "extra": {"b":1,"a":[ ]}}',
        b'{"role":"user","content":"a NUL \\u0000 and half an emoji \\ud83d"}',
        b'{"role":"assistant","content":[{"type":"new_kind","v":1.10e2,"big":123456789012345678901234567890}]}',
        b'{"role":"user","content":"twice","content":"the second counts"}',
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x","n":NaN}]}',
    ]
    sent = await client.post(session, content=b'{"messages": [' + b" , ".join(bodies) + b"]}", headers=JSON)
    assert sent.status_code == 200, sent.text
    full = await client.get(session, params={"view": "full"})
    assert full.content == b'{"data":[' + b",".join(bodies) + b'],"next_cursor":null,"has_more":false}'


async def test_the_full_view_comes_in_pages_when_asked(client: httpx2.AsyncClient, session: str) -> None:
    await append(client, session, *({"role": "user", "content": str(number)} for number in range(5)))
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = (
            await client.get(session, params={"view": "full", "limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        seen += [message["content"] for message in page["data"]]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
    assert seen == ["0", "1", "2", "3", "4"]
    assert cursor is None


async def test_an_empty_session_has_empty_views(client: httpx2.AsyncClient, session: str) -> None:
    for view in ("live", "full", "api"):
        answer = await client.get(session, params={"view": view})
        assert answer.json() == {"data": [], "next_cursor": None, "has_more": False}


async def test_the_live_view_leaves_out_what_the_model_never_sees(client: httpx2.AsyncClient, session: str) -> None:
    half = {"uuid": "p1", "role": "assistant", "content": "Hel", "partial": True}
    aside = {"uuid": "x1", "role": "user", "content": "a sub-agent's", "is_sidechain": True}
    await append(client, session, USER, aside, half)
    live = (await client.get(session)).json()["data"]
    assert [message["uuid"] for message in live] == ["u1"]
    await append(client, session, half | {"content": "Hello", "partial": False})
    live = (await client.get(session)).json()["data"]
    assert [message["content"] for message in live] == ["Hi", "Hello"]


async def test_the_api_view_is_ready_to_send(client: httpx2.AsyncClient, session: str) -> None:
    await append(client, session, USER, {"role": "system", "content": "a note"}, ASSISTANT)
    ready = (await client.get(session, params={"view": "api"})).json()["data"]
    assert [set(message) for message in ready] == [{"role", "content"}, {"role", "content"}]
    assert [message["role"] for message in ready] == ["user", "assistant"]


async def test_after_a_compaction_the_live_view_begins_with_its_result(
    app: FastAPI, client: httpx2.AsyncClient, session: str
) -> None:
    await append(client, session, USER, ASSISTANT)
    job = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()
    await stage.succeed(app, job["id"])
    await append(client, session, {"uuid": "u2", "role": "user", "content": "And now?"})
    live = (await client.get(session)).json()["data"]
    assert [message["uuid"] for message in live] == ["b-1", "s-1", "k-1", "a-1", "u2"]
    full = (await client.get(session, params={"view": "full"})).json()["data"]
    assert [message["uuid"] for message in full] == ["u1", "a1", "u2"]
    ready = (await client.get(session, params={"view": "api"})).json()["data"]
    assert ready[0]["role"] == "user"


async def test_a_stored_boundary_begins_the_live_view(client: httpx2.AsyncClient, session: str) -> None:
    boundary = {"uuid": "b", "role": "system", "content": "", "metadata": {"kind": "compact_boundary"}}
    summary = {"uuid": "s", "role": "user", "content": "Summary: …", "is_compact_summary": True}
    await append(client, session, USER, ASSISTANT, boundary, summary)
    live = (await client.get(session)).json()["data"]
    assert [message["uuid"] for message in live] == ["b", "s"]


async def test_expected_seq_refuses_a_batch_that_does_not_continue_there(
    client: httpx2.AsyncClient, session: str
) -> None:
    await append(client, session, USER)
    answer = await client.post(session, json={"messages": [ASSISTANT], "expected_seq": 0})
    assert answer.status_code == 409
    assert answer.json()["code"] == "conflict"
    taken = await client.post(session, json={"messages": [ASSISTANT], "expected_seq": 1})
    assert taken.json()["head_seq"] == 2


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"role": "robot", "content": "x"}, "messages[1].role"),
        ({"role": "user"}, "messages[1].content"),
        ({"role": "user", "content": [{"text": "no type"}]}, "messages[1].content[0]"),
        ({"role": "user", "content": "x", "uuid": "has spaces in it"}, "messages[1].uuid"),
        ({"role": "user", "content": "x", "uuid": "nul\0"}, "messages[1].uuid"),
        ({"role": "user", "content": "x", "is_meta": "yes"}, "messages[1].is_meta"),
        ({"role": "user", "content": "x", "usage": {"input_tokens": -1}}, "messages[1].usage.input_tokens"),
        ("just text", "messages[1]"),
        (None, "messages[1]"),
        (17, "messages[1]"),
    ],
)
async def test_one_wrong_message_refuses_the_whole_batch(
    client: httpx2.AsyncClient, session: str, message: object, path: str
) -> None:
    answer = await client.post(session, json={"messages": [USER, message]})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == path
    assert (await client.get("/v1/sessions/s1")).json()["head_seq"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"messages": [}', 400),
        (b'{"messages": []} and more', 400),
        (b"\xff\xfe", 400),
        (b'{"messages":' + b"[" * 100_000, 400),
        (b'{"messages": [{"role":"user","content":' + b"[" * 3_000 + b"]" * 3_000 + b"}]}", 400),
        (b'{"messages": [{"role":"user","content":' + b"[" * 500 + b"]" * 500 + b"}]}", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b"{}", 422),
        (b'{"messages": null}', 422),
        (b'{"messages": {"role": "user"}}', 422),
        (b'{"messages": [], "expected_seq": -1}', 422),
        (b'{"messages": [], "expected_seq": "1"}', 422),
        (b'{"messages": [], "expected_seq": 1e400}', 422),
        (b'{"messages": [], "expected_seq": ' + b"9" * 5_000 + b"}", 400),
        (b'{"messages": [], "expected_seq": ' + b"9" * 30 + b"}", 422),
        (b'{"messages": [], "surprise": 1}', 422),
        (b'{"messages": [], "\\ud800": 1}', 422),
    ],
)
async def test_a_body_that_is_no_batch_is_refused_with_a_problem(
    client: httpx2.AsyncClient, session: str, body: bytes, status: int
) -> None:
    answer = await client.post(session, content=body, headers=JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert answer.json()["code"] == "invalid_request"


async def test_an_empty_batch_changes_nothing(client: httpx2.AsyncClient, session: str) -> None:
    assert (await append(client, session)).json()["head_seq"] == 0


async def test_messages_of_an_unknown_session_are_refused(client: httpx2.AsyncClient) -> None:
    answer = await append(client, "/v1/sessions/nobody/messages", USER)
    assert answer.status_code == 404


async def test_the_api_view_is_ready_for_a_chat_completion_too(
    app: FastAPI, client: httpx2.AsyncClient, session: str
) -> None:
    """The result of a compaction, what came later, and the session's system prompt before them."""
    await client.put("/v1/sessions/s1", json={"system": [{"type": "text", "text": "You are careful."}]})
    await append(client, session, USER, ASSISTANT)
    await stage.succeed(app, (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"])
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "Seen."}
    await append(client, session, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
    chat = (await client.get(session, params={"view": "api", "format": "openai"})).json()
    function = {"name": "look", "arguments": '{"at":1}'}
    assert chat == {
        "data": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Summary: so far so good."},
            {"role": "assistant", "content": "Going on."},
            {"role": "user", "content": "The file again."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "Seen."},
        ],
        "next_cursor": None,
        "has_more": False,
    }
    same = await client.get(session, params={"view": "api", "format": "anthropic"})
    assert same.json() == (await client.get(session, params={"view": "api"})).json()


@pytest.mark.parametrize("view", ["live", "full"])
async def test_other_views_have_no_format(client: httpx2.AsyncClient, session: str, view: str) -> None:
    answer = await client.get(session, params={"view": view, "format": "openai"})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "format")


@pytest.mark.parametrize("query", ["limit=-1", "limit=0", "limit=x", "view=all", "cursor=garbage&view=full", "page=2"])
async def test_wrong_parameters_are_named(client: httpx2.AsyncClient, session: str, query: str) -> None:
    answer = await client.get(f"{session}?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == query.split("=", maxsplit=1)[0]


async def test_a_problem_never_repeats_what_was_sent(client: httpx2.AsyncClient, session: str) -> None:
    secret = "SECRET-4711"
    for content in (
        json.dumps({"messages": [{"role": secret, "content": secret}]}),
        json.dumps({"messages": [{"role": "user", "content": "x", "uuid": f"{secret} {secret}"}]}),
        json.dumps({"messages": secret}),
        f'{{"messages": [ {secret}',
    ):
        answer = await client.post(session, content=content, headers=JSON)
        assert answer.is_client_error
        assert secret not in answer.text


async def test_a_batch_without_uuids_is_stored_once_under_one_idempotency_key(
    client: httpx2.AsyncClient, session: str
) -> None:
    body = {"messages": [{"role": "user", "content": "Once, please."}]}
    headers = {"Idempotency-Key": "batch-1"}
    first = await client.post(session, json=body, headers=headers)
    again = await client.post(session, json=body, headers=headers)
    other = await client.post(session, json=body | {"expected_seq": 1}, headers=headers)
    assert (first.status_code, again.status_code, again.json()) == (200, 200, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert len((await client.get(session, params={"view": "full"})).json()["data"]) == 1


async def test_a_refused_batch_leaves_its_idempotency_key_free(client: httpx2.AsyncClient, session: str) -> None:
    body = {"messages": [{"role": "user", "content": "Second."}], "expected_seq": 1}
    headers = {"Idempotency-Key": "batch-2"}
    assert (await client.post(session, json=body, headers=headers)).status_code == 409
    await append(client, session, USER)
    assert (await client.post(session, json=body, headers=headers)).status_code == 200
