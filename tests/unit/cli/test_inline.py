"""A file for `compact --inline`: what is sent of it, and what is said when it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from compaction.cli import jobs
from compaction.cli.inline import conversation_in
from tests.unit.cli.test_waiting import JOB

TURNS: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
LINES = "\n".join(map(json.dumps, TURNS)) + "\n\n"


@pytest.mark.parametrize(
    ("text", "model", "fields"),
    [
        (json.dumps(TURNS), "m", {"model": "m", "messages": TURNS}),
        (LINES, "m", {"model": "m", "messages": TURNS}),
        (json.dumps(TURNS[0]), "m", {"model": "m", "messages": TURNS[:1]}),
        (json.dumps({"model": "own", "messages": TURNS}), None, {"model": "own", "messages": TURNS}),
        (
            json.dumps({"model": "own", "system": "s", "tools": [], "stream": True, "messages": TURNS}, indent=1),
            "m",
            {"model": "m", "system": "s", "tools": [], "messages": TURNS},
        ),
    ],
)
def test_a_list_a_request_and_lines_are_taken(
    tmp_path: Path, text: str, model: str | None, fields: dict[str, Any]
) -> None:
    file = tmp_path / "history.json"
    file.write_text(text, encoding="utf-8")
    assert conversation_in(file, model) == fields


@pytest.mark.parametrize(("text", "words"), [(json.dumps(TURNS), "--model"), ("", "neither"), ("{]", "neither")])
def test_what_cannot_be_sent_is_told(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "history.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(typer.BadParameter, match=words):
        conversation_in(file, None)


def test_a_job_without_a_session_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = {"session_id": None, "status": "succeeded", "done": True, "was_compacted": False, "reason": "disabled"}
    jobs.show(JOB | skipped | {"progress": {}}, as_json=False)  # type: ignore[arg-type]  # a test's shorthand
    shown = capsys.readouterr().out
    assert "(inline)" in shown
    assert "compactd session" not in shown
