"""What fills a session's window, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.anyio


async def test_the_analysis_counts_by_kind_and_tool(client: httpx2.AsyncClient) -> None:
    """One call of Read and its result, twice the same file: the older result is wasted."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at the file."}]
    for number in (1, 2):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": "a.py"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "value = 1\n" * 200}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    await client.put("/v1/sessions/filled", json={"model": "claude-haiku-4-5", "system": "Be careful."})
    await client.post("/v1/sessions/filled/messages", json={"messages": messages})
    answer = await client.get("/v1/sessions/filled/context")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["session_id"], found["window"], found["anchored"]) == ("filled", 200_000, False)
    assert [(tool["name"], tool["requests"], tool["results"]) for tool in found["tools"]] == [("Read", 2, 2)]
    kinds = {part["kind"]: part["tokens"] for part in found["kinds"]}
    assert kinds["results"] > kinds["requests"] > 0
    assert sum(kinds.values()) == found["estimated_tokens"]
    assert found["repeated_reads"][0]["path"] == "a.py"
    assert found["wasted_tokens"] * 2 == kinds["results"]


async def test_a_session_that_is_not_there_has_no_analysis(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/sessions/nowhere/context")).status_code == 404
