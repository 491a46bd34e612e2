"""Errors and fixes: each failure with what was changed afterwards and the run that passed, or that none did."""

from __future__ import annotations

from compaction.core.messages import Message
from tests.unit.summarizers.talk import asked, assistant, called, filler, sections, summary_message, user

FAILED = """Exit code 1
==== FAILURES ====
E   AssertionError: assert 2 == 3
FAILED tests/test_sum.py::test_sum
1 failed in 0.1s"""


def ran(command: str, result: str, *, is_error: bool = False) -> list[Message]:
    return called("Bash", result, is_error=is_error, command=command)


def edited(path: str) -> list[Message]:
    return called("Edit", "ok", file_path=path, old_string="a", new_string="b")


def test_a_failure_is_paired_with_its_fix_and_the_run_that_passed() -> None:
    talk = asked(
        user("fix the sum"),
        ran("pytest tests", FAILED, is_error=True),
        assistant("The sum starts at one."),
        edited("/srv/sum.py"),
        ran("pytest tests -q", "3 passed in 0.2s"),
        filler(),
    )

    assert sections(talk)[4] == (
        "- `pytest tests` failed:\n"
        "  | E   AssertionError: assert 2 == 3\n"
        "  | FAILED tests/test_sum.py::test_sum\n"
        "  | 1 failed in 0.1s\n"
        "  Assistant: The sum starts at one.\n"
        "  Then changed `/srv/sum.py`; later `pytest tests -q` passed"
    )


def test_failures_in_a_row_of_one_check_are_one_entry_with_the_first_and_the_last_error() -> None:
    talk = asked(
        ran("go test ./...", "a_test.go:7: undefined: Delay\nFAIL", is_error=True),
        edited("/srv/a.go"),
        ran("go test ./...", "a_test.go:9: wrong type\nFAIL", is_error=True),
        edited("/srv/b.go"),
        ran("go test ./...", "ok shop 0.1s"),
        filler(),
    )
    shown = sections(talk)[4]

    assert shown.startswith("- `go test ./...` failed 2×:\n  | a_test.go:7: undefined: Delay\n")
    assert "Last failure:\n  | a_test.go:9: wrong type" in shown
    assert "Then changed `/srv/a.go`, `/srv/b.go`; later `go test ./...` passed" in shown
    assert shown.count("\n- ") == 0


def test_a_check_that_never_passed_is_told_as_open() -> None:
    shown = sections(asked(ran("make lint", "error: unused import", is_error=True), edited("/srv/a.py"), filler()))[4]

    assert shown.endswith("Then changed `/srv/a.py`; it was not seen to pass afterwards")


def test_another_check_that_passes_proves_nothing() -> None:
    talk = asked(ran("npm run lint", "error: semi", is_error=True), ran("npm run test", "ok"), filler())

    assert "It was not seen to pass afterwards" in sections(talk)[4]


def test_a_chain_that_passes_proves_each_of_its_checks() -> None:
    talk = asked(
        ran("cd /srv && make lint 2>&1 | tail -5", "error: unused", is_error=True),
        ran("make format && make lint && make test", "ok"),
        filler(),
    )

    assert "Later `make format && make lint && make test` passed" in sections(talk)[4]


def test_a_failure_whose_exit_status_was_lost_in_a_pipe_is_seen() -> None:
    shown = sections(asked(ran("pytest 2>&1 | tail -3", "E   ValueError: bad\n2 failed, 3 passed"), filler()))[4]

    assert "`pytest 2>&1 | tail -3` failed:" in shown
    assert "E   ValueError: bad" in shown


def test_reading_about_failures_is_no_failure() -> None:
    talk = asked(
        ran("cat build.log", "FAILED step 3\nTraceback (most recent call last):"),
        ran("git log --oneline | head", "a1 fix: 2 failed tests"),
        called("Read", "Traceback (most recent call last):\nError: x", file_path="/srv/notes.md"),
        filler(),
    )

    assert sections(talk)[4] == "- None."


def test_an_edit_that_did_not_apply_and_went_through_later_is_one_line() -> None:
    missing = "String to replace not found in file."
    failed = called("Edit", missing, is_error=True, file_path="/srv/a.py", old_string="q", new_string="r")
    shown = sections(asked(failed, edited("/srv/a.py"), filler()))[4]

    assert shown == "- Edit `/srv/a.py` failed: String to replace not found in file.\n  A later try went through"


def test_a_refusal_of_the_user_is_told_as_such() -> None:
    refusal = "The user doesn't want to proceed with this tool use."
    shown = sections(asked(ran("git stash", refusal, is_error=True), filler()))[4]

    assert shown.startswith("- The user refused `git stash`")
    assert "do not repeat it unasked" in shown


def test_terminal_colours_do_not_hide_an_error() -> None:
    shown = sections(asked(ran("vitest", "\x1b[31mFAIL\x1b[39m src/a.test.ts\n\x1b[1mTypeError: x\x1b[22m"), filler()))[
        4
    ]

    assert "  | TypeError: x" in shown
    assert "\x1b" not in shown


def test_commands_are_listed_once_with_the_outcome_of_their_last_run() -> None:
    talk = asked(
        ran("make build", "error: no", is_error=True),
        ran("make build", "built in 3s"),
        ran("ls", "a.py"),
        filler(),
    )
    shown = sections(talk)[5]

    assert "- Ran `make build`: 2×, last: ok: built in 3s" in shown
    assert "`ls`" not in shown


def test_a_failure_of_an_earlier_summary_is_closed_by_a_later_run() -> None:
    before = "4. Errors and Fixes:\n- `pytest tests` failed: E  assert 1\n  It was not seen to pass afterwards\n"
    shown = sections(asked(summary_message(before), user("go on"), ran("pytest tests -q", "3 passed"), filler()))[4]

    assert shown == "- `pytest tests` failed: E  assert 1\n  later `pytest tests -q` passed"
