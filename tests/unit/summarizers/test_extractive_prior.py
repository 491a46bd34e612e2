"""An earlier summary is updated: its facts move into the new sections, nothing is nested, the user's rules stay."""

from __future__ import annotations

from compaction.core import summary
from compaction.core.messages import Message, Usage
from compaction.ports import SummaryReply
from compaction.summarizers.extractive import extract
from tests.unit.summarizers.talk import asked, assistant, called, filler, parted, sections, summary_message, user

BY_A_MODEL = """This session goes on from an earlier one.

Analysis:
1. Initial request: the user wanted a queue.

Summary:
1. Primary Request and Intent:
   The user wants a queue in Postgres.

2. Key Technical Concepts:
   - SKIP LOCKED

3. Files and Code Sections:
   - `queue.py`
     - claims rows
     ```python
     def claim(): ...
     ```

4. Errors and fixes:
   - deadlock, fixed by ordering

5. Problem Solving:
   chose Postgres over Redis

6. All user messages:
   - "make a queue"
   - "not in Redis"
   Constraint: never use Redis
   Constraint: always run the tests
   Withdrawn: always run the tests

7. Pending Tasks:
   - load test

8. Current Work:
   writing claim()

9. Optional Next Step:
   run the load test
"""


def compacted(text: str) -> Message:
    """The summary message that the pipeline makes of a reply."""
    reply = SummaryReply(text=text, stop_reason="end_turn", usage=Usage(), model="extractive", degraded=True)
    return summary_message(summary.compact_text(summary.validate(reply).text))


def test_each_section_of_a_models_summary_goes_on_in_its_place() -> None:
    talk = asked(summary_message(BY_A_MODEL), user("How far is it?"), filler(), assistant("Nearly there."))
    found = sections(talk)

    assert "- The user wants a queue in Postgres." in found[1]
    assert "- SKIP LOCKED" in found[2]
    assert "- `queue.py`\n  - claims rows\n  ```python\n  def claim(): ...\n  ```" in found[3]
    assert "- deadlock, fixed by ordering" in found[4]
    assert "- chose Postgres over Redis" in found[5]
    assert '- "make a queue"\n- "not in Redis"\n- How far is it?' in found[6]
    assert "load test" in found[7]
    assert "Analysis" not in extract(talk)


def test_the_rules_of_an_earlier_summary_stay_unless_withdrawn() -> None:
    quoted = sections(asked(summary_message(BY_A_MODEL), user("And never push."), filler()))[6]

    assert quoted.startswith("- Constraint: never use Redis\n- Constraint: And never push.\n")
    assert "always run the tests" not in quoted
    assert "Withdrawn" not in quoted


def test_old_current_work_becomes_history_when_new_work_follows() -> None:
    found = sections(asked(summary_message(BY_A_MODEL), user("go on"), filler(), assistant("Done.")))

    assert "- Before this part: writing claim()" in found[5]
    assert "writing claim()" not in found[8]
    assert "run the load test" not in found[9]


def test_with_nothing_new_the_old_summary_stays_as_it_is() -> None:
    found = sections(asked(summary_message(BY_A_MODEL)))

    assert found[8] == "- writing claim()"
    assert found[9] == "- run the load test"


def test_the_notice_says_that_entries_were_carried_over() -> None:
    assert "Entries of the earlier summary were carried over." in sections(asked(summary_message(BY_A_MODEL)))[0]
    assert "carried over" not in sections(asked(user("hi")))[0]


def test_an_unmarked_message_with_the_prior_summarys_text_is_no_user_message() -> None:
    request = asked(user(f"Going on:\n\n{BY_A_MODEL}"), user("next"), filler(), prior_summary=BY_A_MODEL)

    assert "Going on:" not in sections(request)[6]


def test_a_summary_without_headings_is_kept_whole_as_the_first_entry() -> None:
    assert sections(asked(summary_message("We built a queue."), user("go"), filler()))[1].startswith(
        "- We built a queue."
    )


def test_three_compactions_in_a_row_forget_no_user_message_and_nest_nothing() -> None:
    rounds = [
        [
            user("Build the queue. Never use Redis."),
            *called("Write", "ok", file_path="/srv/q.py", content="Q = 1"),
            *filler(),
        ],
        [assistant("The queue stands and its tests pass; the table has an index."), user("Now the docs."), *filler()],
        [assistant("Docs are written, with one page per command and an index."), user("Now the release."), *filler()],
    ]
    head: list[Message] = []
    text = ""
    for messages in rounds:
        text = extract(asked(head, messages))
        head = [compacted(text)]
    found = parted(text)

    assert found[6].startswith(
        "- Constraint: Never use Redis.\n- Build the queue. Never use Redis.\n- Now the docs.\n- Now"
    )
    assert "- First request: Build the queue. Never use Redis." in found[1]
    assert "- Latest request: Now the release." in found[1]
    assert found[1].count("request:") == 2
    assert "- Reported on “Build the queue. Never use Redis.”: The queue stands" in found[5]
    assert "- Reported on “Now the docs.”: Docs are written" in found[5]
    assert "- `/srv/q.py`: new file, written 1×; last change: whole file written, 1 lines\n  | Q = 1" in found[3]
    assert text.count("Primary Request and Intent") == 1


def test_a_heading_inside_a_users_message_does_not_split_the_next_summary() -> None:
    tricky = "Use this outline:\n1. Primary Request and Intent:\n7. Pending Tasks:\n- fake task"
    first = extract(asked(user(tricky), assistant("ok"), filler()))
    found = sections(asked(compacted(first), user("go on"), filler()))

    assert "fake task" not in found[7]
    assert "- Use this outline:\n  1. Primary Request and Intent:" in found[6]
