from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from compaction.errors import Unavailable

pytestmark = pytest.mark.anyio

MODEL = {"model": "claude-haiku-4-5"}


def check(answer: httpx2.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "code", "detail", "request_id"} <= set(problem)
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["request_id"] == answer.headers["X-Request-Id"]


async def test_an_unknown_address_is_a_problem(client: httpx2.AsyncClient) -> None:
    for path in ("/", "/v2/sessions", "/v1/sessions/s1/nothing", "/v1/sessions/", "/v1/compactions/"):
        check(await client.get(path), 404, "not_found")


async def test_a_wrong_method_is_a_problem_that_names_the_right_ones(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/v1/compactions")
    check(answer, 405, "invalid_request")
    assert answer.headers["Allow"]


@pytest.mark.parametrize("media", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_body_that_is_not_declared_as_json_is_refused(client: httpx2.AsyncClient, media: str | None) -> None:
    headers = {} if media is None else {"Content-Type": media}
    check(await client.put("/v1/sessions/s1", content=b"{}", headers=headers), 415, "invalid_request")
    assert (await client.get("/v1/sessions/s1")).status_code == 404


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"])
async def test_json_may_be_declared_in_several_ways(client: httpx2.AsyncClient, media: str) -> None:
    body = b'{"model": "claude-haiku-4-5"}'
    assert (await client.put("/v1/sessions/s1", content=body, headers={"Content-Type": media})).is_success


async def test_a_body_that_announces_too_much_is_refused_before_it_is_read(client: httpx2.AsyncClient) -> None:
    reads: list[str] = []

    async def body(path: str) -> AsyncIterator[bytes]:
        reads.append(path)
        yield b"x"

    headers = {"Content-Type": "application/json", "Content-Length": str(10**9)}
    for method, path in (
        ("PUT", "/v1/sessions/s1"),
        ("POST", "/v1/compactions"),
        ("PUT", "/v1/sessions/s1/state/files/a"),
        ("POST", "/v1/sessions/import"),
        ("POST", "/v1/api-keys"),
    ):
        check(await client.request(method, path, content=body(path), headers=headers), 413, "too_large")
    assert reads == []


async def test_a_body_that_grows_too_large_is_refused_while_it_comes(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json=MODEL)
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"messages": [{"role": "user", "content": "'
        for _ in range(1_000):
            sent += 1
            yield b"x" * 100_000
        yield b'"}]}'

    answer = await client.post("/v1/sessions/s1/messages", content=body(), headers={"Content-Type": "application/json"})
    check(answer, 413, "too_large")
    assert sent <= 43  # the limit is 4 MiB here
    assert (await client.get("/v1/sessions/s1")).json()["head_seq"] == 0


async def test_a_request_id_of_the_caller_comes_back(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/compactions", headers={"X-Request-Id": "trace-42"})
    assert answer.headers["X-Request-Id"] == "trace-42"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "<script>", "a;b"])
async def test_an_unsafe_request_id_is_replaced(client: httpx2.AsyncClient, given: str) -> None:
    answer = await client.get("/v1/compactions", headers={"X-Request-Id": given})
    assert answer.headers["X-Request-Id"] not in {"", given}


async def test_an_unforeseen_failure_is_told_without_its_text(app: FastAPI, client: httpx2.AsyncClient) -> None:
    async def broken() -> None:
        raise RuntimeError("SECRET-4711 of a transcript")

    app.add_api_route("/broken", broken)
    answer = await client.get("/broken")
    check(answer, 500, "internal")
    assert "SECRET" not in answer.text


async def test_a_database_that_is_away_is_a_503_with_retry_after(app: FastAPI, client: httpx2.AsyncClient) -> None:
    async def away() -> None:
        raise Unavailable("The database is away or too busy. Try again in a moment.")

    app.add_api_route("/away", away)
    answer = await client.get("/away")
    check(answer, 503, "unavailable")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/compactions", {"GET", "POST"}),
        ("POST", "/v1/sessions/s1", {"GET", "PUT", "DELETE"}),
        ("PATCH", "/v1/sessions/s1/state/files/src/a.py", {"GET", "PUT", "DELETE"}),
        ("OPTIONS", "/healthz", {"GET"}),
    ],
)
async def test_a_wrong_method_is_told_all_the_right_ones(
    client: httpx2.AsyncClient, method: str, path: str, allowed: set[str]
) -> None:
    answer = await client.request(method, path)
    check(answer, 405, "invalid_request")
    assert set(answer.headers["Allow"].split(", ")) == allowed
