from __future__ import annotations

import pytest

from compaction.errors import InvalidSession
from compaction.store.sessions import LiveView, StoredMessage
from worker import assignment
from worker.assignment import decode_view


def view(*bodies: bytes) -> LiveView:
    return LiveView(None, [StoredMessage(seq, body) for seq, body in enumerate(bodies, 1)], len(bodies))


def crowd(values: int) -> bytes:
    """A message with `values` marks in its metadata, and eight more: three members, and one inside, with braces."""
    return b'{"role":"user","content":"Hi","metadata":{"a":[' + b"0," * (values - 1) + b"0]}}"


def test_a_view_is_decoded_with_its_seqs() -> None:
    first, second = decode_view(view(b'{"role":"user","content":"Hi"}', b'{"role":"assistant","content":"Yes"}'))
    assert (first.role, first.seq, second.role, second.seq) == ("user", 1, "assistant", 2)


def test_a_view_of_too_many_json_values_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier version stored: 1.5 million marks in each of two messages, and the marks around them."""
    monkeypatch.setattr(assignment, "decode_message", None)
    with pytest.raises(InvalidSession, match="3000000 JSON values"):
        decode_view(view(crowd(1_500_000), crowd(1_500_000)))


def test_what_is_no_message_is_told_without_its_words() -> None:
    with pytest.raises(InvalidSession) as caught:
        decode_view(view(b'{"role":"canary"}'))
    assert "canary" not in caught.value.message
