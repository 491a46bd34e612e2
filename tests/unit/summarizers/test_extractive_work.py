"""Decisions, tasks, the work in hand and what comes next."""

from __future__ import annotations

from compaction.core.jsonbytes import Json
from tests.unit.summarizers.talk import asked, assistant, called, filler, sections, summary_message, user

REPORT = "The importer reads both formats now. All tests pass, and the old flag is gone from the command line."


def todo(text: str, status: str) -> dict[str, Json]:
    return {"content": text, "status": status, "activeForm": text}


def test_the_last_words_on_each_finished_request_are_reports() -> None:
    talk = asked(
        user("Read both formats."), assistant("Looking."), assistant(REPORT), user("Thanks, now docs."), filler()
    )

    assert f"- Reported on “Read both formats.”: {REPORT}" in sections(talk)[5]


def test_a_decision_with_its_reason_is_kept() -> None:
    reason = "I'll use a row per attempt instead of a counter, because the support desk wants to see each one."
    talk = asked(
        user("go"), assistant(reason), called("Read", "x", file_path="/srv/a.py"), assistant("Done so far."), filler()
    )

    assert f"- Said on the way: {reason}" in sections(talk)[5]


def test_only_the_newest_task_list_counts() -> None:
    talk = asked(
        user("go"),
        called("TodoWrite", "ok", todos=[todo("old task", "pending")]),
        called(
            "TodoWrite",
            "ok",
            todos=[todo("tests", "completed"), todo("docs", "in_progress"), todo("release", "pending")],
        ),
        filler(),
    )

    assert sections(talk)[7] == "- [in progress] docs\n- [pending] release\n- Done: tests"


def test_tasks_kept_one_by_one_are_followed() -> None:
    talk = asked(
        user("go"),
        called("TaskCreate", "Task #1 created", subject="write the parser"),
        called("TaskCreate", "Task #2 created", subject="write the tests"),
        called("TaskUpdate", "ok", taskId="1", status="completed"),
        called("TaskUpdate", "ok", taskId="2", status="in_progress"),
        filler(),
    )

    assert sections(talk)[7] == "- [in progress] write the tests\n- Done: write the parser"


def test_a_plan_of_steps_is_a_task_list_too() -> None:
    plan = [{"step": "read", "status": "completed"}, {"step": "write", "status": "in_progress"}]
    talk = asked(user("go"), called("update_plan", "ok", plan=plan), filler())

    assert "- [in progress] write" in sections(talk)[7]


def test_what_was_announced_in_the_last_turn_is_pending() -> None:
    talk = asked(user("go"), assistant("The parser works. Next, I will write its tests."), filler())

    assert "- Announced in the last turn: Next, I will write its tests." in sections(talk)[7]


def test_open_tasks_of_an_earlier_summary_stay_marked_as_such() -> None:
    before = "7. Pending Tasks:\n- the load test\n8. Current Work:\n- x"
    request = asked(summary_message(before), user("how is it?"), filler())

    assert sections(request)[7] == "- (from the earlier summary) the load test"


def test_current_work_is_the_request_in_hand_with_the_last_calls_and_their_end() -> None:
    talk = asked(
        user("Old request."),
        assistant(REPORT),
        filler(),
        user("Add the counter."),
        assistant("I'll add it to the metrics."),
        called("Edit", "ok", file_path="/srv/metrics.py", old_string="a", new_string="b\nc"),
        called("Bash", "Exit code 1\nE   NameError: name 'c' is not defined", is_error=True, command="pytest tests"),
    )
    found = sections(talk)

    assert found[8] == (
        "- Working on: “Add the counter.”\n"
        "- Assistant: I'll add it to the metrics.\n"
        "- Called Edit `/srv/metrics.py`: 1 line replaced by 2\n"
        "- Called Bash `pytest tests`: FAILED: E   NameError: name 'c' is not defined".replace("E   ", "E ")
        + "\n"
        "- Its result was the last thing seen:\n"
        "  | E   NameError: name 'c' is not defined"
    )
    assert found[9] == (
        "- The turn was not finished: Bash `pytest tests` had just failed. Last request: “Add the counter.”"
    )


def test_an_open_call_is_told_as_open() -> None:
    talk = asked(user("Run it."), filler(), called("Bash", None, command="make bench"))
    found = sections(talk)

    assert "- Called Bash `make bench`: no result yet" in found[8]
    assert "Bash `make bench` had no result yet" in found[9]


def test_the_next_step_quotes_the_task_in_progress() -> None:
    talk = asked(user("go"), called("TodoWrite", "ok", todos=[todo("write the docs", "in_progress")]), filler())

    assert "- Task in progress: “write the docs”." in sections(talk)[9]


def test_an_unanswered_user_message_is_the_next_step() -> None:
    talk = asked(user("First."), assistant("ok"), filler(), user("And now the docs."))

    assert sections(talk)[9] == ("- The last user message has not been answered yet. Last request: “And now the docs.”")


def test_after_an_answered_request_nothing_is_made_up() -> None:
    talk = asked(user("First."), filler(), assistant("It is done."))

    assert sections(talk)[9].startswith("- The assistant had answered the last request; go on only with open tasks")


def test_languages_programs_tools_and_names_are_the_concepts() -> None:
    talk = asked(
        user("go"),
        called(
            "Edit", "ok", file_path="/srv/a.py", old_string="x", new_string="import httpx\nfrom rich.text import Text"
        ),
        called("Bash", "ok", command="cd /srv && uv run pytest -q | tail -3"),
        *(assistant(f"`RetryPolicy` again, number {number}.") for number in range(3)),
        filler(),
    )

    assert sections(talk)[2] == (
        "- Languages and formats: Python\n"
        "- Imported in the changed code: httpx, rich\n"
        "- Programs: `uv run pytest`\n"
        "- Tools: Edit, Bash, Read\n"
        "- Names that came up often: `RetryPolicy`"
    )
