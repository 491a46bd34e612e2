"""The local stack with the product in it: what `make up` and `make demo` promise."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.integration.local_stack import LocalStack, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def client(state: dict[str, Any]) -> httpx2.Client:
    """Speaks to the API with the key of stack.json."""
    headers = {"Authorization": f"Bearer {state['api_key']}"}
    return httpx2.Client(base_url=state["url"], headers=headers, timeout=60, trust_env=False)


def test_the_stack_is_ready_when_it_says_so_and_keeps_sessions_over_a_kill(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", real=True) as first:
        with client(first.wait_ready()) as http:
            assert http.get("/readyz").status_code == 200
            assert http.put("/v1/sessions/kept", json={"model": "claude-sonnet-5-5"}).status_code in {200, 201}
        first.end(signal.SIGKILL)
        eventually(lambda: first.leftovers() == [])

    with LocalStack(tmp_path / "local", real=True) as second:
        with client(second.wait_ready()) as http:
            assert http.get("/v1/sessions/kept").status_code == 200
        code, out, err = second.end(signal.SIGINT)

        assert (code, err) == (0, "")
        assert "Stopped." in out
        assert second.leftovers() == []


def test_a_demo_shows_the_main_job_and_leaves_nothing_running(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", "demo", real=True, COMPACTD_SUMMARIZER="extractive") as demo:
        code, out, err = demo.end()

        assert code == 0, err
        assert re.search(r"^Session +demo-", out, re.MULTILINE)
        assert re.search(r"^Job +[0-9a-f-]{36} +succeeded", out, re.MULTILINE)
        assert re.search(r"^Strategy +extractive", out, re.MULTILINE)
        assert demo.leftovers() == []
