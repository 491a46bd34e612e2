from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}
STATE = "/v1/sessions/s1/state"


@pytest.fixture(autouse=True)
async def session(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})


async def test_an_entry_comes_back_as_it_was_put(client: httpx2.AsyncClient) -> None:
    body = b'{ "content" : "NUL \\u0000, half \\ud83d" }'
    put = await client.put(f"{STATE}/files/src/app/main.py", content=body, headers=JSON)
    assert (put.status_code, put.content) == (204, b"")
    assert (await client.get(f"{STATE}/files/src/app/main.py")).content == body
    newer = b'{"content": "newer"}'
    await client.put(f"{STATE}/files/src/app/main.py", content=newer, headers=JSON)
    assert (await client.get(f"{STATE}/files/src/app/main.py")).content == newer


async def test_a_removed_entry_is_gone(client: httpx2.AsyncClient) -> None:
    await client.put(f"{STATE}/plans/current", json={"content": "1. …"})
    assert (await client.delete(f"{STATE}/plans/current")).status_code == 204
    assert (await client.get(f"{STATE}/plans/current")).status_code == 404
    assert (await client.delete(f"{STATE}/plans/current")).status_code == 404


@pytest.mark.parametrize(
    "kind", ["files", "plans", "plan_mode", "skills", "memory", "tools", "agents", "mcp_instructions", "claude_md"]
)
async def test_every_kind_is_taken(client: httpx2.AsyncClient, kind: str) -> None:
    assert (await client.put(f"{STATE}/{kind}/x", json={"a": 1})).status_code == 204


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("secrets/x", b"{}", 422),
        ("files/" + "x" * 1_025, b"{}", 422),
        ("files/a%00b", b"{}", 422),
        ("files/x", b"{", 400),
        ("files/x", b"\xff", 400),
    ],
)
async def test_a_wrong_entry_is_refused(client: httpx2.AsyncClient, path: str, body: bytes, status: int) -> None:
    answer = await client.put(f"{STATE}/{path}", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (status, "invalid_request")


async def test_state_of_an_unknown_session_is_refused(client: httpx2.AsyncClient) -> None:
    assert (await client.put("/v1/sessions/nobody/state/files/x", json={})).status_code == 404
