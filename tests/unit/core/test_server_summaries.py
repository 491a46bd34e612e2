"""Summaries that the API's own compaction made."""

from __future__ import annotations

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.server_summaries import FAILED, first_behind_ours, told, told_behind_ours

TEXT = {"type": "text", "text": "Done."}
OURS = Message(role="user", content="Ours.", is_compact_summary=True)


def with_block(content: Json = "What was.") -> Message:
    return Message(role="assistant", content=[{"type": "compaction", "content": content, "signature": "SIG"}, TEXT])


@pytest.mark.parametrize(
    ("content", "text"),
    [("What was.", "[compaction] What was."), (None, FAILED), ("", FAILED), ([TEXT], "[compaction] Done.")],
)
def test_they_are_told_as_text(content: Json, text: str) -> None:
    plain = Message(role="user", content="go")
    found = told([plain, with_block(content)])
    assert found[0] is plain
    assert found[1].content == [{"type": "text", "text": text}, TEXT]


def test_only_those_behind_a_summary_of_ours_are_in_its_way() -> None:
    before, behind = with_block(), with_block()
    assert first_behind_ours([before, OURS, Message(role="user", content="go"), behind]) == 3
    found = told_behind_ours([before, OURS, behind])
    assert found[:2] == (before, OURS)
    assert found[2] == told([behind])[0]


def test_without_a_summary_of_ours_they_stay() -> None:
    messages = (with_block(), with_block())
    assert first_behind_ours(messages) is None
    assert told_behind_ours(messages) == messages
