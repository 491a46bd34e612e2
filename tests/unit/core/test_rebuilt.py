"""Messages that each compaction makes anew."""

from __future__ import annotations

import pytest

from compaction.core.messages import Message
from compaction.core.rebuilt import HOOK_KIND, hook_message, is_rebuilt


@pytest.mark.parametrize(
    ("metadata", "rebuilt"),
    [
        (None, False),
        ({}, False),
        ({"kind": "compact_boundary"}, False),
        ({"kind": ["odd"]}, False),
        ({"kind": "compact_attachment"}, True),
        ({"kind": "compact_hook_message"}, True),
    ],
)
def test_the_kind_tells(metadata: dict[str, object] | None, rebuilt: bool) -> None:
    assert is_rebuilt(Message(role="user", content="x", metadata=metadata)) is rebuilt


def test_a_hooks_message_is_marked_and_keeps_what_else_it_says() -> None:
    marked = hook_message(Message(role="user", content="Rules.", is_meta=True, metadata={"from": "a hook"}))
    assert marked.metadata == {"from": "a hook", "kind": HOOK_KIND}
    assert is_rebuilt(marked)
    assert is_rebuilt(hook_message(Message(role="user", content="Rules.")))
