from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from compaction.cli.main import app

COMMANDS = (
    "demo",
    "import",
    "compact",
    "status",
    "wait",
    "result",
    "jobs",
    "retry",
    "cancel",
    "session",
    "breaker",
    "doctor",
)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No stack can be found."""
    monkeypatch.delenv("COMPACTD_URL", raising=False)
    monkeypatch.delenv("COMPACTD_API_KEY", raising=False)
    monkeypatch.setenv("COMPACTD_LOCAL_DIR", str(tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.startswith("compactd ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact"],
        ["compact", "s1", "--up-to", "a", "--from", "b"],
        ["jobs", "--limit", "-1"],
        ["jobs", "--status", "lost"],
        ["wait", "j", "--timeout", "-1"],
        ["result", "j", "--format", "yaml"],
        ["result", "j", "--format", "openai", "--json"],
        ["explode"],
        ["session", "no such id!"],
        ["compact", "a/b"],
        ["breaker", ""],
        ["session", "x" * 201],
        ["jobs", "--session", "\u00fc"],
        ["import", "some.jsonl", "--session", "a b"],
        ["import"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], nowhere: None) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize("command", ["jobs", "demo"])
def test_without_a_stack_the_command_ends_with_3_and_says_what_to_do(command: str, nowhere: None) -> None:
    done = CliRunner().invoke(app, [command])
    assert done.exit_code == 3
    assert "make up" in done.output
    assert "Traceback" not in done.output


def test_nobody_at_the_address_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACTD_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("COMPACTD_API_KEY", "ck_x")
    done = CliRunner().invoke(app, ["status", "some-job"])
    assert done.exit_code == 3
    assert "Nobody answers at http://127.0.0.1:1" in done.output


@pytest.mark.parametrize("arguments", [["session", "no such id!"], ["jobs", "--session", "no such id!"]])
def test_an_id_that_no_session_can_have_is_told_as_such(arguments: list[str], nowhere: None) -> None:
    assert "1 to 200 characters" in " ".join(CliRunner().invoke(app, arguments).output.replace("\u2502", " ").split())


@pytest.mark.parametrize("command", [["jobs"], ["doctor"], ["env"], ["demo"], ["import", "pyproject.toml"]])
@pytest.mark.parametrize(
    ("url", "api_key", "words"),
    [
        ("127.0.0.1:8080", "ck_x", "COMPACTD_URL must begin with http:// or https://"),
        ("http://127.0.0.1:80800", "ck_x", "COMPACTD_URL has a port that is not from 1 to 65535"),
        ("http://127.0.0.1:8080\n", "ck_x", "COMPACTD_URL has a line break"),
        ("http://127.0.0.1:1", "ck_secret\n", "COMPACTD_API_KEY has a line break"),
        ("http://127.0.0.1:1", "ck_secr\u00e9t", "COMPACTD_API_KEY has a line break, a blank or another character"),
        ("http://127.0.0.1:1", "ck_secr\udce9t", "COMPACTD_API_KEY has a line break, a blank or another character"),
    ],
)
def test_a_malformed_address_or_key_ends_with_2_and_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, command: list[str], url: str, api_key: str, words: str
) -> None:
    monkeypatch.setenv("COMPACTD_URL", url)
    monkeypatch.setenv("COMPACTD_API_KEY", api_key)
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, words in " ".join(done.output.split())) == (2, True), done.output
    assert "secr" not in done.output


def test_shells_can_complete_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shell's script asks the program for, as bash does it."""
    monkeypatch.setenv("COMP_WORDS", "compactd do")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_COMPACTD_COMPLETE", "complete_bash")
    done = CliRunner().invoke(app, [], prog_name="compactd")
    assert done.output.split() == ["doctor"]
    monkeypatch.delenv("_COMPACTD_COMPLETE")
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output
