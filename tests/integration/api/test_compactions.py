from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store import idempotency
from tests.integration.api import stage
from tests.integration.api.conftest import RememberingDoorbell

pytestmark = pytest.mark.anyio

JOBS = "/v1/compactions"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"  # the example of the W3C recommendation
UNKNOWN_ID = "01900000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
async def session(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    await client.post("/v1/sessions/s1/messages", json={"messages": turns})


async def enqueue(client: httpx2.AsyncClient, **parameters: object) -> httpx2.Response:
    return await client.post(JOBS, json={"session_id": "s1", **parameters})


async def test_an_accepted_job_is_told_with_everything_about_it(client: httpx2.AsyncClient) -> None:
    answer = await enqueue(client, instructions="Keep the plan.", metadata={"by": "test"})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["Location"] == f"{JOBS}/{job['id']}"
    assert set(job) == {  # DESIGN §5
        "id",
        "session_id",
        "trigger",
        "scope",
        "status",
        "done",
        "attempt",
        "max_attempts",
        "created_at",
        "started_at",
        "ended_at",
        "not_before",
        "progress",
        "coalesced",
        "was_compacted",
        "reason",
        "error",
        "instructions",
        "metadata",
        "result_url",
    }
    assert (job["session_id"], job["trigger"], job["status"], job["done"]) == ("s1", "manual", "queued", False)
    assert job["scope"] == {"kind": "full", "uuid": None}
    assert (job["instructions"], job["metadata"]) == ("Keep the plan.", {"by": "test"})
    assert (await client.get(answer.headers["Location"])).json() == job


@pytest.fixture
async def nothing_waits(app: FastAPI) -> None:
    """The jobs of earlier tests are not due: a ring goes out only when nothing waits ahead."""
    async with app.state.services.database.begin() as conn:
        await conn.exec_driver_sql("UPDATE jobs SET not_before = now() + interval '1 day' WHERE status = 'queued'")


@pytest.mark.usefixtures("nothing_waits")
async def test_the_doorbell_rings_once_the_job_is_stored(
    client: httpx2.AsyncClient, doorbell: RememberingDoorbell
) -> None:
    job = (await enqueue(client)).json()
    await asyncio.sleep(0)
    assert job["id"] in doorbell.rung


@pytest.mark.usefixtures("nothing_waits")
async def test_a_lost_ring_is_counted_and_not_told(
    app: FastAPI, client: httpx2.AsyncClient, doorbell: RememberingDoorbell
) -> None:
    before = app.state.services.rings.lost
    doorbell.answers = False
    try:
        assert (await enqueue(client)).status_code == 202
        await asyncio.sleep(0.01)
    finally:
        doorbell.answers = True
    assert app.state.services.rings.lost == before + 1


async def test_a_second_request_joins_the_waiting_job(client: httpx2.AsyncClient) -> None:
    first = (await enqueue(client, trigger="bulk")).json()
    second = await enqueue(client, trigger="manual", instructions="Mine wins.")
    assert second.status_code == 200
    joined = second.json()
    assert joined["id"] == first["id"]
    assert (joined["coalesced"], joined["trigger"], joined["instructions"]) == (1, "manual", "Mine wins.")


async def test_scope_needs_the_uuid_of_a_message(client: httpx2.AsyncClient) -> None:
    assert (await enqueue(client, scope={"kind": "up_to", "uuid": "m-1"})).json()["scope"]["uuid"] == "m-1"
    for wrong in ({"kind": "up_to"}, {"kind": "full", "uuid": "m-1"}, {"kind": "half"}, "full"):
        answer = await enqueue(client, scope=wrong)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"].startswith("scope")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trigger", "sometimes"),
        ("session_id", "a b"),
        ("session_id", 7),
        ("instructions", "x" * 20_001),
        ("instructions", "nul\0"),
        ("strategy", "magic"),
        ("fallback", "claude"),
        ("force", "yes"),
        ("token_gap", -1),
        ("token_gap", 1.5),
        ("token_gap", 10**30),
        ("not_before", "tomorrow"),
        ("not_before", "2026-01-01T00:00:00"),
        ("metadata", []),
        ("metadata", {"a": "nul\0"}),
        ("metadata", {"a": "x" * 20_000}),
        ("messages", []),
    ],
)
async def test_a_wrong_field_is_named(client: httpx2.AsyncClient, field: str, value: object) -> None:
    answer = await enqueue(client, **{field: value})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == field
    assert (await client.get(JOBS)).json()["data"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"session_id": "\\ud800"}', 400),
        (b'{"session_id":' + b"[" * 100_000, 400),
        (b"[]", 422),
        (b"null", 422),
        (b"{}", 422),
        (b'{"session_id": "s1", "metadata": {"n": NaN}}', 422),
        (b'{"session_id": "s1", "metadata": {"n": 1e400}}', 422),
    ],
)
async def test_a_body_that_is_no_request_is_refused(client: httpx2.AsyncClient, body: bytes, status: int) -> None:
    answer = await client.post(JOBS, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, "invalid_request"), answer.text


async def test_a_job_for_an_unknown_session_is_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.post(JOBS, json={"session_id": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_job_can_begin_later_but_not_next_year(client: httpx2.AsyncClient) -> None:
    now = datetime.now(UTC)
    later = (now + timedelta(hours=1)).isoformat()
    job = (await enqueue(client, not_before=later)).json()
    assert datetime.fromisoformat(job["not_before"]) == datetime.fromisoformat(later)
    for ahead in (timedelta(days=31), timedelta(days=365 * 7_000)):
        answer = await enqueue(client, not_before=(now + ahead).isoformat())
        assert answer.json()["errors"][0]["path"] == "not_before"
    ancient = await enqueue(client, not_before="0001-01-01T00:00:00+14:00")
    assert ancient.status_code == 200


async def test_the_same_idempotency_key_gives_the_same_answer(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first = await client.post(JOBS, json={"session_id": "s1"}, headers=headers)
    again = await client.post(JOBS, json={"session_id": "s1"}, headers=headers)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await client.get(f"{JOBS}/{first.json()['id']}")).json()["coalesced"] == 0
    other = await client.post(JOBS, json={"session_id": "s1", "force": True}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_a_refused_request_does_not_use_its_idempotency_key_up(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k-2"}
    assert (await client.post(JOBS, json={"session_id": "later"}, headers=headers)).status_code == 404
    await client.put("/v1/sessions/later", json={"model": "claude-haiku-4-5"})
    assert (await client.post(JOBS, json={"session_id": "later"}, headers=headers)).status_code == 202


async def test_many_requests_with_one_idempotency_key_make_one_job(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k-3"}
    requests = (client.post(JOBS, json={"session_id": "s1"}, headers=headers) for _ in range(20))
    answers = await asyncio.gather(*requests)
    assert {answer.status_code for answer in answers} <= {202, 409}  # 409: the first one is still at work
    jobs = (await client.get(JOBS)).json()["data"]
    assert [job["coalesced"] for job in jobs] == [0]


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
async def test_an_idempotency_key_has_its_limits(client: httpx2.AsyncClient, key: str) -> None:
    answer = await client.post(JOBS, json={"session_id": "s1"}, headers={b"Idempotency-Key": key.encode("latin-1")})
    assert answer.json()["errors"][0]["path"] == "Idempotency-Key"


async def test_a_live_job_says_when_to_ask_again_and_is_never_cached(client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    answer = await client.get(f"{JOBS}/{job['id']}")
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Cache-Control"] == "no-store"
    same = await client.get(f"{JOBS}/{job['id']}", headers={"If-None-Match": answer.headers["ETag"]})
    assert same.status_code == 304


async def test_prefer_wait_answers_when_the_job_ends(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    waiting = asyncio.create_task(client.get(f"{JOBS}/{job['id']}", headers={"Prefer": "wait=30"}))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await stage.succeed(app, job["id"])
    answer = await waiting
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert "Retry-After" not in answer.headers
    ended = answer.json()
    assert (ended["status"], ended["done"], ended["was_compacted"]) == ("succeeded", True, True)
    assert ended["result_url"] == f"{JOBS}/{job['id']}/result"


async def test_prefer_wait_gives_the_job_as_it_is_when_the_time_is_over(client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    answer = await client.get(f"{JOBS}/{job['id']}", headers={"Prefer": "respond-async, wait=1"})
    assert (answer.json()["status"], answer.headers["Preference-Applied"]) == ("queued", "wait=1")


@pytest.mark.parametrize("prefer", ["wait=-1", "wait=soon", "wait", "return=minimal", "wait=99999999999"])
async def test_a_preference_that_cannot_be_met_is_passed_over(client: httpx2.AsyncClient, prefer: str) -> None:
    job = (await enqueue(client)).json()
    answer = await client.get(f"{JOBS}/{job['id']}", headers={"Prefer": prefer})
    assert answer.status_code == 200
    assert "Preference-Applied" not in answer.headers


@pytest.mark.parametrize("job_id", [UNKNOWN_ID, "garbage", "a%00b", "1" * 101, "..%2f.."])
async def test_an_unknown_job_is_a_problem_on_every_route(client: httpx2.AsyncClient, job_id: str) -> None:
    calls = [
        await client.get(f"{JOBS}/{job_id}"),
        await client.get(f"{JOBS}/{job_id}/result"),
        await client.get(f"{JOBS}/{job_id}/events"),
        await client.post(f"{JOBS}/{job_id}/cancel"),
        await client.post(f"{JOBS}/{job_id}/retry"),
    ]
    for answer in calls:
        assert answer.status_code in {404, 422}
        assert answer.headers["content-type"] == "application/problem+json"


async def test_jobs_are_listed_newest_first_in_pages(app: FastAPI, client: httpx2.AsyncClient) -> None:
    made = []
    for _ in range(5):
        job = (await enqueue(client)).json()
        await stage.skip(app, job["id"])
        made.append(job["id"])
    first = (await client.get(JOBS, params={"limit": 3})).json()
    rest = (await client.get(JOBS, params={"limit": 3, "cursor": first["next_cursor"]})).json()
    assert [job["id"] for job in first["data"] + rest["data"]] == made[::-1]
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)


async def test_jobs_are_listed_by_state_session_trigger_and_error(app: FastAPI, client: httpx2.AsyncClient) -> None:
    failed = (await enqueue(client)).json()
    await stage.fail(app, failed["id"], "no_summary")
    waiting = (await enqueue(client, trigger="bulk")).json()

    async def ids(**filters: str) -> list[str]:
        return [job["id"] for job in (await client.get(JOBS, params=filters)).json()["data"]]

    assert await ids(status="failed") == [failed["id"]]
    assert await ids(error_code="no_summary") == [failed["id"]]
    assert await ids(trigger="bulk") == [waiting["id"]]
    assert await ids(session_id="s1") == [waiting["id"], failed["id"]]
    assert await ids(session_id="s2") == []


async def test_jobs_are_listed_by_the_time_they_came(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s2", json={"model": "claude-haiku-4-5"})
    first, second = (await enqueue(client)).json(), (await enqueue(client, session_id="s2")).json()

    async def ids(**filters: str) -> list[str]:
        return [job["id"] for job in (await client.get(JOBS, params=filters)).json()["data"]]

    assert await ids(created_after=second["created_at"]) == [second["id"]]
    assert await ids(created_before=second["created_at"]) == [first["id"]]
    assert await ids(created_before=first["created_at"], created_after=first["created_at"]) == []


@pytest.mark.parametrize(
    "query",
    [
        "created_after=yesterday",
        "created_before=2026-11-30T20:00:00",
        "limit=-1",
        "limit=0",
        "limit=201",
        "limit=x",
        "status=lost",
        "cursor=!",
        "colour=red",
    ],
)
async def test_wrong_filters_are_named(client: httpx2.AsyncClient, query: str) -> None:
    answer = await client.get(f"{JOBS}?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == query.split("=", maxsplit=1)[0]


async def test_a_waiting_job_is_cancelled_at_once_and_only_once(client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    first = await client.post(f"{JOBS}/{job['id']}/cancel")
    again = await client.post(f"{JOBS}/{job['id']}/cancel")
    assert (first.status_code, first.json()["status"], first.json()["done"]) == (200, "cancelled", True)
    assert again.json() == first.json()


async def test_cancelling_a_running_job_asks_its_worker(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    await stage.claimed(app, job["id"])
    answer = await client.post(f"{JOBS}/{job['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "running")


async def test_an_ended_job_is_run_again_as_a_new_one(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client, instructions="Keep the plan.", metadata={"by": "test"})).json()
    early = await client.post(f"{JOBS}/{job['id']}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    await stage.fail(app, job["id"])
    answer = await client.post(f"{JOBS}/{job['id']}/retry", headers={"Idempotency-Key": "again"})
    new = answer.json()
    assert answer.status_code == 202
    assert new["id"] != job["id"]
    assert (new["instructions"], new["metadata"], new["status"]) == ("Keep the plan.", {"by": "test"}, "queued")
    replay = await client.post(f"{JOBS}/{job['id']}/retry", headers={"Idempotency-Key": "again"})
    assert replay.json()["id"] == new["id"]


async def test_a_failed_job_tells_why(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job = (await enqueue(client)).json()
    await stage.fail(app, job["id"], "no_summary")
    ended = (await client.get(f"{JOBS}/{job['id']}")).json()
    assert ended["error"] == {"code": "no_summary", "message": "It did not work.", "retryable": False}
    assert (ended["status"], ended["result_url"]) == ("failed", None)


async def traced(app: FastAPI, job_id: str) -> str | None:
    async with stage.database_of(app).connect() as conn:
        query = "SELECT traceparent FROM jobs WHERE id = %s"
        found: str | None = (await conn.exec_driver_sql(query, (job_id,))).scalar_one()
    return found


async def test_the_callers_trace_goes_with_the_job(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """A broken one is no reason to refuse a job; a retry keeps the first one unless it has its own."""
    body = {"session_id": "s1"}
    job = (await client.post(JOBS, json=body, headers={"traceparent": TRACE})).json()
    assert await traced(app, job["id"]) == TRACE
    await client.post(f"{JOBS}/{job['id']}/cancel")
    other = TRACE.replace("4bf9", "aaaa")
    for headers, expected in (({}, TRACE), ({"traceparent": other}, other)):
        again = (await client.post(f"{JOBS}/{job['id']}/retry", headers=headers)).json()
        assert await traced(app, again["id"]) == expected
        await client.post(f"{JOBS}/{again['id']}/cancel")
    job = (await client.post(JOBS, json=body, headers={"traceparent": "00-broken-01"})).json()
    assert await traced(app, job["id"]) is None


async def test_while_the_first_request_is_at_work_the_same_key_is_refused(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    """The first one stands still in the middle of its transaction here, with the key's lock in its hand."""
    headers = {"Idempotency-Key": "at-work"}
    async with stage.database_of(app).begin() as conn:
        tenant_id = await tenant_of(app, client)
        assert await idempotency.recall(conn, tenant_id, "at-work", b"mark") is None
        answer = await client.post(JOBS, json={"session_id": "s1"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await client.post(JOBS, json={"session_id": "s1"}, headers=headers)).status_code == 202


async def tenant_of(app: FastAPI, client: httpx2.AsyncClient) -> int:
    """Our row id of the client's tenant."""
    public_id = client.headers["Authorization"].split("_")[1]
    async with stage.database_of(app).connect() as conn:
        query = "SELECT tenant_id FROM api_keys WHERE public_id = %s"
        found: int = (await conn.exec_driver_sql(query, (public_id,))).scalar_one()
    return found
