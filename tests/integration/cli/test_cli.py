"""The command line against the running service, as a process: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.embedded import Valkey
from tests.integration.service import KEY, Service, history
from tests.unit.formats.chat_rules import broken_rules

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.out)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


def compactd(service: Service, *arguments: str) -> Done:
    environ = {"PATH": os.environ["PATH"], "COMPACTD_URL": str(service.http.base_url), "COMPACTD_API_KEY": KEY}
    command = [str(Path(sys.executable).with_name("compactd")), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_demo_shows_the_whole_job(service: Service) -> None:
    done = compactd(service, "demo")
    assert done.code == 0, done.err
    for words in ("Session", "Job", "before", "after", "Strategy", "fresh: summary by the model", "api_messages"):
        assert words in done.out
    assert "import sample-session.jsonl: reading and storing" in done.err
    assert "\nTry next\n  compactd result" in done.out  # the stack goes on
    again = compactd(service, "demo", "--json")
    assert again.code == 0, again.err
    assert again.json["result"]["job_id"] == again.json["job"]["id"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_cancels_its_job(service: Service, number: signal.Signals) -> None:
    service.play([{"delay_s": 60, "good_summary": {}}])
    environ = {"PATH": os.environ["PATH"], "COMPACTD_URL": str(service.http.base_url), "COMPACTD_API_KEY": KEY}
    command = [str(Path(sys.executable).with_name("compactd")), "demo"]
    demo = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        service.until(lambda: service.calls, "the demo's job calls nobody")
        demo.send_signal(number)
        _, told = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert demo.returncode == 130
    assert "the job was cancelled" in " ".join(told.split())
    assert "Traceback" not in told
    newest = compactd(service, "jobs", "--limit", "1", "--json").json["data"][0]
    assert newest["session_id"].startswith("demo-")
    assert service.wait(newest["id"])["status"] == "cancelled"


def test_a_session_is_compacted_and_shown(service: Service) -> None:
    service.put_session("cli-1", history(20))
    waited = compactd(service, "compact", "cli-1", "--instructions", "Keep names.", "--wait", "--json")
    assert waited.code == 0, waited.err
    job = waited.json
    assert (job["status"], job["instructions"]) == ("succeeded", "Keep names.")
    assert "succeeded" in compactd(service, "status", job["id"]).out
    assert compactd(service, "wait", job["id"]).code == 0
    page = compactd(service, "result", job["id"]).out
    assert "Primary" in page
    assert "ready to send" in page
    assert compactd(service, "result", job["id"], "--json").json["job_id"] == job["id"]
    session = compactd(service, "session", "cli-1").out
    assert job["id"] in session
    assert "closed" in session
    listed = compactd(service, "jobs", "--session", "cli-1").out
    assert job["id"] in listed


def test_a_skipped_job_has_no_result_and_the_words_say_why(service: Service) -> None:
    service.put_session("cli-skipped", history(3))
    job = service.compact("cli-skipped", trigger="auto")
    assert (job["status"], job["was_compacted"]) == ("succeeded", False)
    done = compactd(service, "result", job["id"])
    assert done.code == 9
    words = " ".join(done.err.split())
    assert "The job was skipped, so it has no result: below_threshold" in words
    assert "compactd session cli-skipped" in words
    assert compactd(service, "result", "no-such-job").code == 4


def test_the_next_step_of_a_session_is_what_its_state_asks_for(service: Service) -> None:
    """A full session asks for a compaction, and not for another one before anything was said after it."""

    def advised() -> str:
        return next(line for line in compactd(service, "session", "cli-next").out.splitlines() if "Next" in line)

    service.put_session("cli-next", history(4), settings={"context_window": 200_000})
    assert "nothing has to be done" in advised()
    service.append("cli-next", [{"role": "user", "content": "More. " * 150_000}])
    assert "nothing has" not in advised()
    assert "compactd compact cli-next --wait" in advised()
    job = service.compact("cli-next")
    assert f"compactd result {job['id']}" in advised()
    service.append("cli-next", [{"role": "user", "content": "And more. " * 100_000}])
    assert "compactd compact cli-next --wait" in advised()


def test_a_result_is_written_in_each_format_and_over_no_file(service: Service, tmp_path: Path) -> None:
    """The rows of a log come byte by byte as the API gives them; a file that is there may be that very log."""
    service.put_session("cli-formats", history(20))
    job = compactd(service, "compact", "cli-formats", "--wait", "--json").json["id"]
    whole = compactd(service, "result", job, "--json").json
    assert compactd(service, "result", job, "--format", "envelopes").json == whole
    assert compactd(service, "result", job, "--format", "anthropic").json["messages"] == whole["api_messages"]
    chat = compactd(service, "result", job, "--format", "openai").json
    assert broken_rules(chat["messages"]) == []
    rows = service.http.get(f"/v1/compactions/{job}/result", params={"format": "claude_code"}).text
    assert compactd(service, "result", job, "--format", "claude_code").out == rows

    file = tmp_path / "rows.jsonl"
    done = compactd(service, "result", job, "--format", "claude_code", "--output", str(file))
    assert (done.code, file.read_text()) == (0, rows)
    file.write_text("the log")
    done = compactd(service, "result", job, "--output", str(file))
    assert (done.code, file.read_text()) == (2, "the log")
    assert "is there already" in " ".join(done.err.split())
    assert compactd(service, "result", job, "--output", str(tmp_path / "whole.json")).code == 0
    assert json.loads((tmp_path / "whole.json").read_text()) == whole
    done = compactd(service, "result", job, "--output", str(tmp_path / "nowhere" / "a.json"))
    assert done.code == 2
    assert "nowhere cannot be used: there is no such folder" in " ".join(done.err.split())


def test_a_part_of_a_session_can_be_named(service: Service) -> None:
    service.put_session("cli-2", history(3))
    for option, kind in (("--up-to", "up_to"), ("--from", "from")):
        job = compactd(service, "compact", "cli-2", option, "m-1", "--json").json
        assert job["scope"] == {"kind": kind, "uuid": "m-1"}


def test_a_failed_job_ends_with_1_and_can_be_run_again(service: Service) -> None:
    service.play([BROKEN])
    service.put_session("cli-3", history(20))
    failed = compactd(service, "compact", "cli-3", "--wait")
    assert failed.code == 1
    assert "failed: api_error" in failed.out
    assert "compactd retry" not in failed.out  # the provider would refuse it again
    job = compactd(service, "jobs", "--session", "cli-3", "--json").json["data"][0]
    assert compactd(service, "wait", job["id"]).code == 1
    no_result = compactd(service, "result", job["id"])
    assert (no_result.code, "The job failed, so it has no result: api_error" in no_result.err) == (9, True)
    service.play()
    again = compactd(service, "retry", job["id"], "--json").json
    assert again["id"] != job["id"]
    assert compactd(service, "wait", again["id"]).code == 0


def test_a_job_is_cancelled_and_waiting_has_an_end(service: Service) -> None:
    service.put_session("cli-4", history(3))
    in_an_hour = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    job = service.enqueue("cli-4", not_before=in_an_hour)
    assert compactd(service, "wait", job["id"], "--timeout", "0.2").code == 7
    cancelled = compactd(service, "cancel", job["id"], "--json").json
    assert cancelled["status"] == "cancelled"
    assert compactd(service, "wait", job["id"]).code == 1


def test_the_breaker_is_shown_and_reset(service: Service) -> None:
    service.play([BROKEN] * 3)
    service.put_session("cli-5", history(40), settings={"context_window": 30_000})
    for _ in range(3):
        assert service.compact("cli-5", trigger="auto")["status"] == "failed"
    shown = compactd(service, "breaker", "cli-5")
    assert "open since" in shown.out
    assert compactd(service, "breaker", "cli-5", "--reset", "--json").json["state"] == "closed"
    assert "closed" in compactd(service, "breaker", "cli-5").out


def test_files_and_folders_are_imported_and_what_is_none_is_named(service: Service, tmp_path: Path) -> None:
    good, bad = tmp_path / "logs" / "good.jsonl", tmp_path / "logs" / "bad.jsonl"
    good.parent.mkdir()
    bad.write_text("what is this?\n")
    hidden = tmp_path / "logs" / ".cache" / "hidden.jsonl"
    hidden.parent.mkdir()
    hidden.write_text("not ours\n")
    sample = compactd(service, "sample").out
    good.write_text(sample)
    done = compactd(service, "import", str(tmp_path / "logs"))
    assert done.code == 6
    assert "bad.jsonl" in done.err
    assert "hidden" not in done.out + done.err
    assert "good.jsonl" in done.out
    named = compactd(service, "import", str(good), "--session", "cli-6", "--json")
    assert named.code == 0
    assert named.json[0]["imported"]["session_id"] == "cli-6"
    assert compactd(service, "import", str(tmp_path / "none.jsonl")).code == 4
    for content in ("", " \n\n"):
        (tmp_path / "empty.jsonl").write_text(content)
        for command in ("import", "demo"):
            empty = compactd(service, command, str(tmp_path / "empty.jsonl"))
            assert (empty.code, "is empty" in " ".join(empty.err.split())) == (2, True)
    folder = compactd(service, "demo", str(tmp_path))
    assert (folder.code, "is a folder" in " ".join(folder.err.split())) == (2, True)
    assert compactd(service, "import", str(tmp_path / "logs"), "--session", "x").code == 2


def test_what_is_not_there_ends_with_4(service: Service) -> None:
    for arguments in (("status", "nothing"), ("session", "nobody"), ("compact", "nobody"), ("breaker", "nobody")):
        done = compactd(service, *arguments)
        assert done.code == 4, arguments
        assert done.err.startswith("Error: There is no")


def test_a_wrong_key_ends_with_5(service: Service) -> None:
    environ = {"PATH": os.environ["PATH"], "COMPACTD_URL": str(service.http.base_url), "COMPACTD_API_KEY": "ck_wrong"}
    command = [str(Path(sys.executable).with_name("compactd")), "jobs"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 5
    assert "COMPACTD_API_KEY" in done.stderr


def test_a_file_is_compacted_without_a_session(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps({"model": "claude-haiku-4-5", "messages": history(20)}))
    done = compactd(service, "compact", "--inline", str(file), "--wait", "--json")
    assert done.code == 0, done.err
    assert (done.json["session_id"], done.json["was_compacted"]) == (None, True)
    shown = compactd(service, "result", done.json["id"])
    assert shown.code == 0, shown.err
    assert f"compactd result {done.json['id']} --json" in " ".join(shown.out.split())
    assert "(inline)" in compactd(service, "jobs", "--limit", "1").out


@pytest.mark.parametrize("arguments", [(), ("s1", "--inline", "history.json")])
def test_compact_takes_a_session_or_a_file(service: Service, arguments: tuple[str, ...]) -> None:
    done = compactd(service, "compact", *arguments)
    assert done.code == 2
    assert "--inline" in done.err


def test_a_file_that_is_not_there_is_told(service: Service) -> None:
    done = compactd(service, "compact", "--inline", "no-such-file.json", "--model", "m")
    assert done.code == 4
    assert "no-such-file.json" in done.err
