"""Taking a result over: the producer's copy is compared, the swap recorded, the tail given back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store import results
from tests.integration.api import stage
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

Turn = dict[str, Any]
HISTORY: list[Turn] = [
    {"role": "user", "content": "Why does the build fail?"},
    {"role": "assistant", "content": [{"type": "text", "text": "A test is red: caf\u00e9."}]},
]
FIRST = "35fcb03ce386fe31f5464a5a9010d1a2ec9eb8201827aae04353ee0d70aa8de0"  # by hand, with printf and sha256sum
SECOND = "c228956305fc8c3ba5a8401b8fa386996741d5ed36e71d1e01b1a0196c30b24a"
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}}
SESSION = "/v1/sessions/s1"


def chain(turns: list[Turn]) -> list[str]:
    """What a producer hashes: role and content of each message it holds."""
    hashes, last = [], ""
    for turn in turns:
        text = json.dumps({"content": turn["content"], "role": turn["role"]}, separators=(",", ":"), sort_keys=True)
        last = hashlib.sha256((last + text).encode("ascii")).hexdigest()
        hashes.append(last)
    return hashes


@pytest.fixture
async def job(app: FastAPI, client: httpx2.AsyncClient) -> str:
    """A finished compaction of a session of two messages."""
    await client.put(SESSION, json={"model": "claude-haiku-4-5"})
    await append(client, *HISTORY)
    return await compacted(app, client)


async def append(client: httpx2.AsyncClient, *messages: Turn) -> None:
    answer = await client.post(f"{SESSION}/messages", json={"messages": list(messages)})
    assert answer.status_code == 200, answer.text


async def compacted(app: FastAPI, client: httpx2.AsyncClient) -> str:
    job_id: str = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    await stage.succeed(app, job_id)
    return job_id


async def apply(client: httpx2.AsyncClient, job_id: str, **body: Any) -> httpx2.Response:  # noqa: ANN401 - JSON
    return await client.post(f"/v1/compactions/{job_id}/apply", json=body)


async def applied_at(app: FastAPI, job_id: str) -> object:
    database = database_of(app)
    async with database.connect() as conn:
        tenant_id = (await conn.exec_driver_sql("SELECT tenant_id FROM jobs WHERE id = %s", (job_id,))).scalar_one()
        row = await results.get(conn, tenant_id, job_id)
    assert row is not None
    return row.applied_at


async def test_an_equal_history_is_recorded_and_the_tail_comes_back(
    app: FastAPI, client: httpx2.AsyncClient, job: str
) -> None:
    await append(client, {"uuid": "m3", "role": "user", "content": "Then mend it."})
    answer = await apply(client, job, prefix_hash=SECOND)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["job_id"], told["session_id"]) == (job, "s1")
    assert (told["covers_through_seq"], told["head_seq"]) == (2, 3)
    assert told["messages"] == [{"uuid": "m3", "role": "user", "content": "Then mend it."}]
    assert told["api_messages"] == (await client.get(f"{SESSION}/messages", params={"view": "api"})).json()["data"]
    assert told["api_messages"][-1]["role"] == "user"
    assert "Then mend it." in json.dumps(told["api_messages"][-1])
    assert await applied_at(app, job) is not None


async def test_asking_again_changes_nothing_and_gives_the_newest_tail(client: httpx2.AsyncClient, job: str) -> None:
    first = (await apply(client, job, prefix_hash=SECOND)).json()
    assert first["messages"] == []
    await append(client, {"role": "user", "content": "Then mend it."})
    again = (await apply(client, job, prefix_hash=SECOND)).json()
    assert again["applied_at"] == first["applied_at"]
    assert [message["content"] for message in again["messages"]] == ["Then mend it."]


async def test_what_the_model_never_sees_is_not_in_the_tail(client: httpx2.AsyncClient, job: str) -> None:
    await append(
        client,
        {"uuid": "side", "role": "user", "content": "a sub-agent's", "is_sidechain": True},
        {"uuid": "half", "role": "assistant", "content": "half stre", "partial": True},
        {"uuid": "m5", "role": "user", "content": "Go on."},
    )
    told = (await apply(client, job, prefix_hash=SECOND)).json()
    assert ([message["uuid"] for message in told["messages"]], told["head_seq"]) == (["m5"], 5)


async def test_another_history_is_stale_and_nothing_changes(app: FastAPI, client: httpx2.AsyncClient, job: str) -> None:
    answer = await apply(client, job, prefix_hash="0" * 64)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["code"]) == (409, "stale")
    assert (problem["covers_through_seq"], problem["length"], problem["first_differing_index"]) == (2, 2, None)
    assert await applied_at(app, job) is None


async def test_a_producer_that_sends_its_hashes_is_told_where_they_differ(client: httpx2.AsyncClient, job: str) -> None:
    mine = chain([HISTORY[0], {"role": "assistant", "content": "Something else."}])
    assert mine[0] == FIRST
    problem = (await apply(client, job, prefix_hash=mine[-1], hashes=mine)).json()
    assert (problem["code"], problem["length"], problem["first_differing_index"]) == ("stale", 2, 1)


async def test_a_list_that_is_only_longer_is_told_so(client: httpx2.AsyncClient, job: str) -> None:
    mine = chain([*HISTORY, {"role": "user", "content": "Then mend it."}])
    problem = (await apply(client, job, prefix_hash=mine[-1], hashes=mine)).json()
    assert (problem["length"], problem["first_differing_index"]) == (2, 2)
    assert "first `length` messages" in problem["detail"]


async def test_ids_times_and_usage_do_not_change_the_hash(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await client.put(SESSION, json={"model": "claude-haiku-4-5"})
    usage = {"input_tokens": 5, "output_tokens": 2}
    await append(
        client,
        HISTORY[0] | {"uuid": "u1", "created_at": "2026-11-30T08:00:00Z"},
        HISTORY[1] | {"uuid": "u2", "api_message_id": "msg_1", "usage": usage},
    )
    assert (await apply(client, await compacted(app, client), prefix_hash=SECOND)).status_code == 200


@pytest.mark.parametrize("held", ["result", "answer", "stored"])
async def test_after_a_swap_a_producer_hashes_what_it_holds(
    app: FastAPI, client: httpx2.AsyncClient, job: str, held: str
) -> None:
    """The result's api_messages, those of the answer to apply, or message by message: then what it appended."""
    tail = {"role": "assistant", "content": [CALL]}
    await append(client, tail)
    answer = (await apply(client, job, prefix_hash=SECOND)).json()
    result = (await client.get(f"/v1/compactions/{job}/result")).json()
    stored = [message for message in result["messages"] if message["role"] != "system"]
    later = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}]}]
    await append(client, *later)
    second = await compacted(app, client)
    mine = {
        "result": [*result["api_messages"], tail, *later],
        "answer": [*answer["api_messages"], *later],
        "stored": [*stored, tail, *later],
    }[held]
    taken = await apply(client, second, prefix_hash=chain(mine)[-1])
    assert taken.status_code == 200, taken.text
    assert taken.json()["covers_through_seq"] == 4


def logged(number: int, parent: int | None, role: str) -> Turn:
    """A line of a Claude Code log."""
    return {
        "type": role,
        "uuid": f"uuid-{number}",
        "parentUuid": None if parent is None else f"uuid-{parent}",
        "sessionId": "s1",
        "timestamp": f"2026-01-01T00:00:0{number}.000Z",
        "message": {"role": role, "content": f"text {number}"},
    }


@pytest.mark.parametrize("anew", [False, True])
async def test_a_result_that_the_stored_history_has_gone_back_behind_is_stale(
    app: FastAPI, client: httpx2.AsyncClient, anew: bool
) -> None:
    """The summary speaks of what was taken back, whichever copy the producer holds; also behind a newer result."""
    common = [logged(1, None, "user"), logged(2, 1, "assistant")]
    first = [*common, logged(3, 2, "user"), logged(4, 3, "assistant")]
    rewound = [*first, logged(5, 2, "user"), logged(6, 5, "assistant")]
    await client.post("/v1/sessions/import", content="\n".join(map(json.dumps, first)))
    job_id = await compacted(app, client)
    old = [line["message"] for line in first]
    assert (await apply(client, job_id, prefix_hash=chain(old)[-1])).status_code == 200
    imported = await client.post("/v1/sessions/import", content="\n".join(map(json.dumps, rewound)))
    assert imported.json()["appended"] == 2
    if anew:
        await compacted(app, client)
    for held in (old, [line["message"] for line in common], [line["message"] for line in (*common, *rewound[4:])]):
        answer = await apply(client, job_id, prefix_hash=chain(held)[-1])
        assert (answer.status_code, answer.json()["code"]) == (409, "stale"), held


async def test_a_job_without_a_result_cannot_be_applied(client: httpx2.AsyncClient) -> None:
    await client.put(SESSION, json={"model": "claude-haiku-4-5"})
    waiting = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    for job_id in (waiting, "nothing"):
        answer = await apply(client, job_id, prefix_hash=SECOND)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "prefix_hash"),
        ({"prefix_hash": ""}, "prefix_hash"),
        ({"prefix_hash": SECOND.upper()}, "prefix_hash"),
        ({"prefix_hash": SECOND + "\n"}, "prefix_hash"),
        ({"prefix_hash": SECOND, "hashes": ["x"]}, "hashes[0]"),
        ({"prefix_hash": SECOND, "force": True}, "force"),
    ],
)
async def test_a_wrong_request_is_named(client: httpx2.AsyncClient, body: dict[str, Any], path: str) -> None:
    answer = await apply(client, "any", **body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
