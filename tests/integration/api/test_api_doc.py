"""docs/api.md is true: each exchange on it happens as it says, in its order, and its recipe gives its hashes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from api.errors import STATUS
from compaction.core import wire
from compaction.core.messages import Message
from tests.integration.api import stage

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
HELD: list[dict[str, Any]] = [
    {"role": "user", "content": "Why does the build fail?"},
    {"role": "assistant", "content": [{"type": "text", "text": "A test is red: caf\u00e9."}]},
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


class Exchange:
    """A request and what the page says of its answer."""

    def __init__(self, block: str) -> None:
        asked, told = block.split("\nHTTP/1.1 ", 1)
        head, _, self.body = asked.strip().partition("\n\n")
        line, *headers = head.split("\n")
        self.method, self.address = line.split(" ", 1)
        self.headers = dict(header.split(": ", 1) for header in headers)
        head, _, body = told.strip().partition("\n\n")
        line, *headers = head.split("\n")
        self.status = int(line.split(" ", 1)[0])
        self.told_headers = dict(header.split(": ", 1) for header in headers)
        self.told = json.loads(body.replace("[…]", '"…"')) if body else None


def agrees(told: Any, found: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether what was found is what the page tells: `…` is anything, and a member that is not told may be there."""
    if isinstance(told, str) and "…" in told:
        begin, _, end = told.partition("…")
        return not isinstance(found, str) or (found.startswith(begin) and found.endswith(end))
    if isinstance(told, dict):
        return isinstance(found, dict) and all(agrees(value, found.get(name, ...)) for name, value in told.items())
    if isinstance(told, list):
        return len(told) == len(found) and all(map(agrees, told, found))
    return bool(told == found)


async def test_every_exchange_happens_as_it_is_told(app: FastAPI, client: httpx2.AsyncClient) -> None:
    exchanges = [Exchange(block) for block in blocks("http")]
    assert len(exchanges) >= 10
    job_id = ""
    for exchange in exchanges:
        address = exchange.address.replace("{job_id}", job_id)
        answer = await client.request(
            exchange.method, address, content=exchange.body.encode() or None, headers=exchange.headers
        )
        place = f"{exchange.method} {exchange.address}: {answer.text}"
        assert answer.status_code == exchange.status, place
        for name, value in exchange.told_headers.items():
            assert agrees(value, answer.headers[name]), (place, name)
        if exchange.told is not None:
            assert agrees(exchange.told, answer.json()), place
        if (exchange.method, exchange.address) == ("POST", "/v1/compactions"):
            job_id = answer.json()["id"]
            await stage.succeed(app, job_id)


def test_the_recipe_in_python_is_ours() -> None:
    [code] = blocks("python")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the page's own example
    hashes = names["prefix_hashes"](HELD)
    assert hashes == wire.prefix_hashes([Message(**turn) for turn in HELD])
    assert hashes[-1] in PAGE


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="the page's hand calculation needs sha256sum")
def test_the_hashes_by_hand_are_those_of_the_page() -> None:
    [script] = blocks("sh")
    subprocess.run(["sh", "-eu", "-c", script], check=True)


def test_every_code_of_the_api_is_in_the_table() -> None:
    for code, status in STATUS.items():
        assert re.search(rf"^\| .*`{code}`.* \| .*{status}.* \|", PAGE, flags=re.MULTILINE), code
