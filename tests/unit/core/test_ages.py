"""Times as producers write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from compaction.core import ages
from compaction.core.messages import Message

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stamp", "found"),
    [
        ("2026-11-30T12:00:00Z", NOON),
        ("2026-11-30T12:00:00.250Z", NOON + timedelta(milliseconds=250)),
        ("2026-11-30T13:00:00+01:00", NOON),
        ("2026-11-30T12:00:00", NOON),
        ("2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
        ("2026-11-30T12:00:00Z" + " " * 40, None),
        (1_700_000_000, None),
        (None, None),
        (["2026-11-30"], None),
    ],
)
def test_a_stamp_is_read_or_passed_over(stamp: Any, found: datetime | None) -> None:  # noqa: ANN401 - any JSON
    assert ages.moment(stamp) == found


def test_an_offset_is_kept() -> None:
    found = ages.moment("2026-11-30T13:00:00+01:00")
    assert found is not None
    assert found.tzinfo == timezone(timedelta(hours=1))


def test_the_last_answer_is_the_last_of_the_conversation() -> None:
    messages = [
        Message(role="assistant", content="Old.", created_at="2026-11-30T11:00:00Z"),
        Message(role="assistant", content="Done.", created_at="2026-11-30T12:00:00Z"),
        Message(role="user", content="Thanks.", created_at="2026-11-30T12:30:00Z"),
        Message(role="assistant", content="A sub-agent.", created_at="2026-11-30T13:00:00Z", is_sidechain=True),
        Message(role="assistant", content="Half of", created_at="2026-11-30T13:00:00Z", partial=True),
    ]
    assert ages.last_answer_at(messages) == NOON


def test_without_an_answer_or_a_time_there_is_none() -> None:
    old = Message(role="assistant", content="Old.", created_at="2026-11-30T11:00:00Z")
    silent = Message(role="assistant", content="Done.")
    assert ages.last_answer_at([old, silent]) is None
    assert ages.last_answer_at([Message(role="user", content="Hello.", created_at="2026-11-30T11:00:00Z")]) is None
    assert ages.last_answer_at([]) is None
