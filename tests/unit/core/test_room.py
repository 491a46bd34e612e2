"""The measures of a request: what a message costs as text, and as it is."""

from __future__ import annotations

from compaction.core import room, tokens
from compaction.core.messages import Message

PLAIN = Message(role="user", content="The parser drops the last line of each file. " * 20)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 100_000}}
PICTURE = Message(role="user", content=[{"type": "text", "text": "Look."}, IMAGE])
THOUGHT = Message(role="assistant", content=[{"type": "thinking", "thinking": "hm " * 1_000, "signature": "s" * 1_000}])


def test_text_costs_its_tokens_and_a_header_in_a_fresh_request() -> None:
    text = tokens.estimate_text(PLAIN.content if isinstance(PLAIN.content, str) else "")
    assert text < room.shown_tokens(PLAIN) < text + 20


def test_media_and_thinking_cost_next_to_nothing_in_a_fresh_request() -> None:
    assert room.shown_tokens(PICTURE) < 100
    assert room.shown_bytes(PICTURE) < 200
    assert (room.shown_tokens(THOUGHT), room.shown_bytes(THOUGHT)) == (0, 0)


def test_media_cost_their_bytes_where_the_message_is_sent_as_it_is() -> None:
    assert 100_000 < room.sent_bytes(PICTURE) < 100_200


def test_bytes_of_a_fresh_request_are_those_of_its_json() -> None:
    quoted = Message(role="user", content='"\n' * 500)
    assert 2_000 <= room.shown_bytes(quoted) < 2_100  # each of the two characters is escaped by a second one


def test_injected_messages_cost_nothing_in_a_fresh_request() -> None:
    assert room.shown_tokens(Message(role="user", content="reminder " * 100, is_meta=True)) == 0
