"""What a job's page and line say: that it waits for a paused provider, and what helps when it has failed."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.cli import jobs
from compaction.cli.progress import Line

JOB: dict[str, Any] = {
    "id": "0190",
    "session_id": "s",
    "status": "queued",
    "done": False,
    "trigger": "manual",
    "scope": {"kind": "full", "uuid": None},
    "attempt": 0,
    "max_attempts": 5,
    "created_at": "2026-11-30T10:00:00Z",
    "ended_at": None,
    "coalesced": 0,
    "metadata": {},
    "was_compacted": None,
    "error": None,
    "result_url": None,
    "progress": {
        "step": "waiting",
        "reason": "provider_paused",
        "cause": "auth_error",
        "until": "2026-11-30T10:05:00+00:00",
    },
}


def test_its_page_names_the_cause_and_the_next_look(capsys: pytest.CaptureFixture[str]) -> None:
    jobs.show(JOB, as_json=False)  # type: ignore[arg-type]  # a test's shorthand
    shown = " ".join(capsys.readouterr().out.split())
    assert "the provider is paused (auth_error); it is asked again at 2026-11-30 10:05:00 UTC" in shown


def test_whoever_waits_sees_it_in_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    Line(None, "compact").show_job(JOB)  # type: ignore[arg-type]  # a test's shorthand
    assert "waiting: the provider is paused (auth_error)" in capsys.readouterr().err


@pytest.mark.parametrize(("retryable", "offered"), [(True, True), (False, False)])
def test_running_again_is_offered_where_it_can_help(
    capsys: pytest.CaptureFixture[str], *, retryable: bool, offered: bool
) -> None:
    error = {"code": "api_error", "message": "No.", "retryable": retryable}
    failed = JOB | {"status": "failed", "done": True, "progress": {}, "error": error}
    jobs.show(failed, as_json=False)  # type: ignore[arg-type]  # a test's shorthand
    assert ("compactd retry" in capsys.readouterr().out) is offered
