from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.anyio

MODEL = "claude-haiku-4-5"


async def test_a_session_is_created_changed_and_read(client: httpx2.AsyncClient) -> None:
    created = await client.put("/v1/sessions/s1", json={"model": MODEL, "system": "Be brief."})
    assert created.status_code == 201, created.text
    changed = await client.put("/v1/sessions/s1", json={"settings": {"auto_compact_enabled": False}})
    assert changed.status_code == 200
    read = (await client.get("/v1/sessions/s1")).json()
    assert read["id"] == "s1"
    assert read["model"] == MODEL
    assert read["settings"] == {"auto_compact_enabled": False}
    assert read["head_seq"] == 0
    assert read["live_job_id"] is None


async def test_a_session_tells_its_size_against_the_marks_of_its_window(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": MODEL})
    usage = {"input_tokens": 150_000, "output_tokens": 20_000}
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes", "usage": usage}]
    await client.post("/v1/sessions/s1/messages", json={"messages": turns})
    state = (await client.get("/v1/sessions/s1")).json()["state"]
    assert state["marks"] == {  # DESIGN §3, a window of 200,000
        "window": 200_000,
        "effective_window": 180_000,
        "warning": 160_000,
        "error": 160_000,
        "auto_compact": 167_000,
        "block": 177_000,
    }
    assert state["tokens"] == 170_000
    assert state["level"] == "auto"
    assert state["percent_left"] == 0


async def test_the_window_of_a_session_can_be_set(client: httpx2.AsyncClient) -> None:
    settings = {"context_window": 100_000, "max_output_tokens": 8_000}
    await client.put("/v1/sessions/s1", json={"model": MODEL, "settings": settings})
    answer = await client.get("/v1/sessions/s1")
    assert answer.json()["state"]["marks"]["effective_window"] == 92_000


async def test_null_takes_a_field_away_and_an_absent_one_stays(client: httpx2.AsyncClient) -> None:
    given = {"model": MODEL, "settings": {"context_window": 100_000}, "query_source": "main", "system": "x" * 4_000}
    await client.put("/v1/sessions/s1", json=given)
    before = (await client.get("/v1/sessions/s1")).json()["state"]["tokens"]
    await client.put("/v1/sessions/s1", json={"query_source": None})
    kept = (await client.put("/v1/sessions/s1", json={"settings": None, "system": None})).json()
    assert (kept["query_source"], kept["settings"], kept["model"]) == (None, {}, MODEL)
    assert (await client.get("/v1/sessions/s1")).json()["state"]["tokens"] < before


async def test_a_new_session_needs_a_model(client: httpx2.AsyncClient) -> None:
    answer = await client.put("/v1/sessions/s1", json={"system": "Be brief."})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "model"
    assert (await client.get("/v1/sessions/s1")).status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system", 3),
        ("tools", {}),
        ("tools", ["Read"]),
        ("request", []),
        ("settings", "none"),
        ("model", ""),
        ("model", "a\0b"),
        ("settings", {"note": "a\0b"}),
        ("settings", {"deep": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}),
        ("query_source", 1),
        ("colour", "red"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_stored(
    client: httpx2.AsyncClient, field: str, value: object
) -> None:
    answer = await client.put("/v1/sessions/s1", json={"model": MODEL, field: value})
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "invalid_request"
    assert answer.json()["errors"][0]["path"] == field
    assert (await client.get("/v1/sessions/s1")).status_code == 404


async def test_an_unknown_session_is_not_found(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/sessions/nobody")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


@pytest.mark.parametrize("name", ["a b", "a%00b", "%E2%82%AC", "x" * 201, "a%0Ab"])
async def test_a_session_id_has_a_strict_alphabet(client: httpx2.AsyncClient, name: str) -> None:
    answer = await client.put(f"/v1/sessions/{name}", json={"model": MODEL})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "session_id"


async def test_a_session_that_has_not_changed_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": MODEL})
    first = await client.get("/v1/sessions/s1")
    again = await client.get("/v1/sessions/s1", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    assert again.content == b""
    await client.post("/v1/sessions/s1/messages", json={"messages": [{"role": "user", "content": "Hi"}]})
    changed = await client.get("/v1/sessions/s1", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize("name", ["context_window", "max_output_tokens"])
@pytest.mark.parametrize("tokens", [0, -1, 10_000_001, 10**30, 1.5, "100000", True])
async def test_a_window_that_no_model_has_is_refused_by_its_name(
    client: httpx2.AsyncClient, name: str, tokens: object
) -> None:
    answer = await client.put("/v1/sessions/s1", json={"model": MODEL, "settings": {name: tokens}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    wrong = answer.json()["errors"]
    assert [error["path"] for error in wrong] == ["settings"]
    assert f"{name} must be a whole number of tokens from 1 to 10000000" in wrong[0]["problem"]
    assert (await client.get("/v1/sessions/s1")).status_code == 404


@pytest.mark.parametrize("tokens", [1, 10_000_000, None])
async def test_a_window_at_its_bounds_or_none_is_taken(client: httpx2.AsyncClient, tokens: int | None) -> None:
    settings = {"context_window": tokens, "max_output_tokens": tokens}
    assert (await client.put("/v1/sessions/s1", json={"model": MODEL, "settings": settings})).status_code == 201
    assert (await client.get("/v1/sessions/s1")).status_code == 200
