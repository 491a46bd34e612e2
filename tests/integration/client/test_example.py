"""docs/examples/agent_loop.py runs: an agent on a (fake) Messages API whose history is kept small on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from ops.fake_provider import FakeProvider, FakeProviderThread
from tests.integration.client.agent import SMALL_WINDOW
from tests.integration.service import KEY, ROOT, Service
from tests.unit.core.rules import broken_rules

EXAMPLE = ROOT / "docs" / "examples" / "agent_loop.py"
ROUNDS = 16  # of 12,000 characters each: twice the small window


def read_call(number: int, path: Path) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": str(path)}}
    return {"content": [{"type": "text", "text": f"Part {number}."}, call], "stop_reason": "tool_use"}


def run(service: Service, claude: FakeProvider, task: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "COMPACTD_URL": str(service.http.base_url),
        "COMPACTD_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": claude.url,
        "ANTHROPIC_API_KEY": "sk-example",
    }
    command = [sys.executable, str(EXAMPLE), "example", task]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)


def test_the_agent_goes_on_with_a_history_that_is_kept_small(service: Service, tmp_path: Path) -> None:
    part = tmp_path / "part.txt"
    part.write_text("some words of a file\n" * 600)
    service.put_session("example", [], settings=SMALL_WINDOW)
    steps = [read_call(number, part) for number in range(ROUNDS)]
    with FakeProviderThread([*steps, {"text": "All parts are read."}]) as claude:
        done = run(service, claude, "Read all the parts. TASK-2002")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "All parts are read.\n"
        assert "compacted on the way" in done.stderr
        sent = [json.loads(call.body or b"")["messages"] for call in claude.calls]
        claude.play([{"text": "Gladly."}])
        again = run(service, claude, "Thank you.")
        assert again.stdout == "Gladly.\n", again.stderr
    assert len(sent) == ROUNDS + 1
    assert [broken_rules(messages) for messages in sent] == [[]] * len(sent)
    sizes = [len(json.dumps(messages)) for messages in sent]
    assert any(later < size / 2 for size, later in pairwise(sizes))
    everything = json.dumps(service.view("example", "full"))
    for words in ("TASK-2002", *(f"Part {number}." for number in range(ROUNDS)), "All parts are read.", "Gladly."):
        assert words in everything
