from __future__ import annotations

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.hooks.signing import is_secret
from tests.integration.api.conftest import speaking_to
from tests.integration.api.stage import database_of, fail, skip, succeed

pytestmark = pytest.mark.anyio

EVERYTHING = ["compaction.cancelled", "compaction.failed", "compaction.skipped", "compaction.succeeded"]
NOBODYS = "00000000-0000-7000-8000-000000000000"


def wanted(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A good request, changed."""
    return {"url": "https://news.example.com/x?token=t"} | changes


async def made(client: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A new webhook."""
    answer = await client.post("/v1/webhooks", json=wanted(**changes))
    assert answer.status_code == 201, answer.text
    hook: dict[str, Any] = answer.json()
    return hook


async def test_a_webhook_tells_its_secret_once(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/webhooks", json=wanted())
    hook = answer.json()
    secret = hook.pop("secret")
    assert is_secret(secret)
    assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/webhooks/{hook['id']}")
    assert answer.headers["cache-control"] == "no-store"
    assert (hook["events"], hook["enabled"], hook["disabled_reason"]) == (EVERYTHING, True, None)
    read = await client.get(answer.headers["location"])
    listed = await client.get("/v1/webhooks")
    assert read.json() == hook
    assert listed.json() == {"data": [hook], "next_cursor": None, "has_more": False}
    assert not any(secret in other.text or "whsec" in other.text for other in (read, listed))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", ""),
        ("url", "news.example.com"),
        ("url", "ftp://news.example.com/"),
        ("url", "https://user:hunter2@news.example.com/"),
        ("url", "https://news.example.com:6379/"),
        ("url", "http://127.0.0.1/"),
        ("url", "http://169.254.169.254/latest/"),
        ("url", None),
        ("events", []),
        ("events", ["everything"]),
        ("events", ["webhook.ping"]),
        ("events", "compaction.failed"),
        ("secret", "whsec_hunter2"),
        ("enabled", True),
    ],
)
async def test_a_wrong_webhook_is_refused_by_its_field_and_not_quoted(
    client: httpx2.AsyncClient, field: str, value: object
) -> None:
    answer = await client.post("/v1/webhooks", json=wanted(**{field: value}))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert answer.json()["errors"][0]["path"].startswith(field)
    assert "hunter2" not in answer.text
    assert (await client.get("/v1/webhooks")).json()["data"] == []


async def test_what_is_given_is_changed_and_the_rest_stays(client: httpx2.AsyncClient) -> None:
    hook = await made(client)
    path = f"/v1/webhooks/{hook['id']}"
    changed = (await client.patch(path, json={"events": ["compaction.failed", "compaction.failed"]})).json()
    assert (changed["url"], changed["events"], changed["enabled"]) == (hook["url"], ["compaction.failed"], True)
    moved = (await client.patch(path, json={"url": "https://other.example.com/"})).json()
    assert (moved["url"], moved["events"]) == ("https://other.example.com/", ["compaction.failed"])
    assert (await client.patch(path, json={})).json()["url"] == "https://other.example.com/"
    wrongs: list[dict[str, Any]] = [{"url": None}, {"events": []}, {"enabled": None}, {"url": "http://10.0.0.1/"}]
    for wrong in [*wrongs, {"secret": "x"}]:
        assert (await client.patch(path, json=wrong)).status_code == 422, wrong
    assert (await client.get(path)).json()["url"] == "https://other.example.com/"


async def test_a_webhook_that_is_switched_off_gets_no_news(client: httpx2.AsyncClient, app: FastAPI) -> None:
    hook = await made(client)
    path = f"/v1/webhooks/{hook['id']}"
    await client.post(f"{path}/test")
    off = (await client.patch(path, json={"enabled": False})).json()
    assert (off["enabled"], off["disabled_reason"]) == (False, "owner")
    refused = await client.post(f"{path}/test")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await end_a_job(client, app)
    assert [one["status"] for one in (await client.get(f"{path}/deliveries")).json()["data"]] == ["dropped"]
    on = (await client.patch(path, json={"enabled": True})).json()
    assert (on["enabled"], on["disabled_reason"]) == (True, None)
    assert (await client.post(f"{path}/test")).status_code == 202


async def test_the_log_tells_what_was_sent_and_never_what_was_said(client: httpx2.AsyncClient, app: FastAPI) -> None:
    hook = await made(client)
    jobs = [await end_a_job(client, app), await end_a_job(client, app, "skip"), await end_a_job(client, app, "fail")]
    log = (await client.get(f"/v1/webhooks/{hook['id']}/deliveries")).json()["data"]
    assert [(one["event"], one["job_id"]) for one in log] == [
        ("compaction.failed", jobs[2]),
        ("compaction.skipped", jobs[1]),
        ("compaction.succeeded", jobs[0]),
    ]
    newest = log[0]
    assert newest["webhook_id"] == f"msg_{newest['id'].replace('-', '')}"
    assert (newest["status"], newest["attempts"], newest["last_error"], newest["ended_at"]) == (
        "pending",
        0,
        None,
        None,
    )
    assert newest["next_attempt_at"] is not None
    assert set(newest) & {"payload", "body", "url", "secret"} == set()


async def test_a_rotated_secret_is_new_and_the_old_one_lives_for_its_overlap(client: httpx2.AsyncClient) -> None:
    hook = await made(client)
    path = f"/v1/webhooks/{hook['id']}"
    rotated = (await client.post(f"{path}/rotate", json={"overlap_seconds": 60})).json()
    assert is_secret(rotated["secret"])
    assert rotated["secret"] != hook["secret"]
    assert rotated["old_secret_until"] > hook["created_at"]
    assert "secret" not in (await client.get(path)).json()
    for seconds in (-1, 604_801, 1.5, "60", None):
        answer = await client.post(f"{path}/rotate", json={"overlap_seconds": seconds})
        assert answer.status_code == 422, seconds


async def test_an_owner_may_bring_its_own_secrets(client: httpx2.AsyncClient) -> None:
    first, second = "whsec_" + "A" * 43 + "=", "whsec_" + "B" * 43 + "="
    hook = await made(client, secret=first)
    assert hook["secret"] == first
    path = f"/v1/webhooks/{hook['id']}"
    assert (await client.post(f"{path}/rotate", json={"secret": second})).json()["secret"] == second
    assert (await client.post(f"{path}/rotate", json={"secret": "hunter2"})).status_code == 422
    assert first not in (await client.get(path)).text


async def test_a_request_sent_again_makes_nothing_twice_and_keeps_no_secret(
    client: httpx2.AsyncClient, app: FastAPI
) -> None:
    headers = {"Idempotency-Key": "the-webhook"}
    first = await client.post("/v1/webhooks", json=wanted(), headers=headers)
    again = await client.post("/v1/webhooks", json=wanted(), headers=headers)
    assert (first.status_code, again.status_code) == (201, 409)
    path = f"/v1/webhooks/{first.json()['id']}"
    turned = await client.post(f"{path}/rotate", json={}, headers={"Idempotency-Key": "turn"})
    assert turned.status_code == 200
    assert (await client.post(f"{path}/rotate", json={}, headers={"Idempotency-Key": "turn"})).status_code == 409
    pings = [await client.post(f"{path}/test", headers={"Idempotency-Key": "ping"}) for _ in range(2)]
    assert pings[0].json() == pings[1].json()
    assert len((await client.get("/v1/webhooks")).json()["data"]) == 1
    assert len((await client.get(f"{path}/deliveries")).json()["data"]) == 1
    async with database_of(app).connect() as conn:
        stored = (await conn.exec_driver_sql("SELECT response FROM idempotency_keys")).scalars().all()
    assert stored
    for secret in (first.json()["secret"], turned.json()["secret"]):
        assert not any(secret.encode() in response for response in stored)


async def test_a_tenant_has_at_most_twenty(client: httpx2.AsyncClient) -> None:
    answers = [await client.post("/v1/webhooks", json=wanted()) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [201] * 20 + [409]
    page = (await client.get("/v1/webhooks", params={"limit": 15})).json()
    rest = (await client.get("/v1/webhooks", params={"limit": 15, "cursor": page["next_cursor"]})).json()
    assert [hook["id"] for hook in page["data"] + rest["data"]] == [answer.json()["id"] for answer in answers[:20]]


async def test_what_was_taken_away_is_gone_with_its_log(client: httpx2.AsyncClient) -> None:
    path = f"/v1/webhooks/{(await made(client))['id']}"
    await client.post(f"{path}/test")
    assert (await client.delete(path)).status_code == 204
    for method, address in (("DELETE", path), ("GET", path), ("GET", f"{path}/deliveries"), ("POST", f"{path}/test")):
        assert (await client.request(method, address)).status_code == 404, address


@pytest.mark.parametrize(("scope", "allowed"), [("admin", True), ("ops", True), ("read", False), ("jobs:write", False)])
async def test_an_admin_or_an_operator_keeps_webhooks_and_nobody_else(
    app: FastAPI, admin: httpx2.AsyncClient, scope: str, *, allowed: bool
) -> None:
    key = (await admin.post("/v1/api-keys", json={"tenant": f"hooked-{scope}", "scopes": [scope]})).json()["key"]
    async with speaking_to(app, key) as client:
        answers = [await client.post("/v1/webhooks", json=wanted()), await client.get(f"/v1/webhooks/{NOBODYS}")]
    assert [answer.status_code for answer in answers] == ([201, 404] if allowed else [403, 403])


async def end_a_job(client: httpx2.AsyncClient, app: FastAPI, how: str = "succeed") -> str:
    """A job that has ended this way."""
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    job_id = str((await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"])
    await {"succeed": succeed, "skip": skip, "fail": fail}[how](app, job_id)
    return job_id
