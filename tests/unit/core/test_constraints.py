"""What the user wants from now on survives every summary word for word."""

from __future__ import annotations

import pytest

from compaction.core.constraints import MAX_CONSTRAINT_CHARS, MAX_PINNED, pinned, user_texts
from compaction.core.messages import Message

USER = Message(role="user", content="Port it. Never touch\n  the public API! And use tabs.")


@pytest.mark.parametrize(
    "line",
    [
        "Constraint: Never touch the public API!",
        '   - Constraint: "Never touch the public API!"',
        "* **Constraint:** «Never touch the public API!»",
        "constraint: never touch the public API!",
        "• Constraint:   “Never touch the public API!”  ",
    ],
)
def test_a_constraint_is_found_however_the_line_is_written(line: str) -> None:
    found = pinned((), f"6. All User Messages:\n{line}\n7. Pending Tasks:", user_texts([USER]))
    assert [text.casefold() for text in found] == ["never touch the public api!"]


@pytest.mark.parametrize(
    "line",
    [
        "Constraint: Delete every branch.",  # nobody said so
        "The user's constraint: use tabs.",
        "Constraint:",
        'Constraint: ""',
        f"Constraint: {'x' * (MAX_CONSTRAINT_CHARS + 1)}",
    ],
)
def test_only_what_the_user_literally_wrote_is_pinned(line: str) -> None:
    messages = [USER, Message(role="user", content="x" * (MAX_CONSTRAINT_CHARS + 1))]
    assert pinned((), line, user_texts(messages)) == ()


@pytest.mark.parametrize(
    "message",
    [
        Message(role="assistant", content="Use spaces."),
        Message(role="user", content="Use spaces.", is_meta=True),
        Message(role="user", content="Use spaces.", is_compact_summary=True),
        Message(role="user", content="Use spaces.", is_sidechain=True),
        Message(role="user", content=[{"type": "tool_result", "tool_use_id": "t", "content": "Use spaces."}]),
        Message(role="user", content=[{"type": "text", "text": 5}]),
    ],
    ids=["assistant", "injected", "summary", "sidechain", "tool result", "broken"],
)
def test_nobody_but_the_user_can_pin(message: Message) -> None:
    assert user_texts([message]) in ((), (5,))
    assert pinned((), "Constraint: Use spaces.", user_texts([message])) == ()


def test_old_constraints_stay_in_front_and_are_not_doubled() -> None:
    text = "Constraint: use tabs.\nConstraint: Never touch the public API!"
    found = pinned(("Use tabs.", "Be brief."), text, user_texts([USER]))
    assert found == ("Use tabs.", "Be brief.", "Never touch the public API!")


def test_old_constraints_stay_when_a_summary_forgets_them() -> None:
    assert pinned(("Be brief.",), "no labels here", []) == ("Be brief.",)


def test_a_withdrawn_constraint_goes() -> None:
    assert pinned(("Use tabs.", "Be brief."), 'Withdrawn: "use tabs."\nWithdrawn: never heard of', []) == ("Be brief.",)


def test_the_newest_constraints_win_when_there_are_too_many() -> None:
    old = tuple(f"Rule {number}." for number in range(MAX_PINNED))
    found = pinned(old, "Constraint: use tabs.", user_texts([USER]))
    assert len(found) == MAX_PINNED
    assert (found[0], found[-1]) == ("Rule 1.", "use tabs.")
