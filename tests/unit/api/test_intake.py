from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from api.errors import Malformed
from api.intake import append_batch, new_messages
from compaction.errors import InvalidRequest

USER = {"role": "user", "content": "Hi"}
BOUNDARY = {"role": "system", "content": "", "metadata": {"kind": "compact_boundary"}}
SUMMARY = {"role": "user", "content": "Summary: …", "is_compact_summary": True}


def starts(*messages: Mapping[str, object]) -> list[bool]:
    bodies = [json.dumps(message).encode() for message in messages]
    return [message.starts_live for message in new_messages(bodies)]


def test_bodies_are_cut_out_unchanged() -> None:
    body = b'{ "messages" : [ {"role":"user", "content":"\\ud83d"} , {"role":"user","content":1.0e1} ] }'.replace(
        b"1.0e1", b'"x"'
    )
    batch = append_batch(body)
    assert [message.body for message in batch.messages] == [
        b'{"role":"user", "content":"\\ud83d"}',
        b'{"role":"user","content":"x"}',
    ]
    assert batch.expected_seq is None


def test_the_live_view_begins_at_a_boundary() -> None:
    assert starts(USER, BOUNDARY, SUMMARY, USER) == [False, True, False, False]


def test_the_live_view_begins_at_a_summary_without_a_boundary() -> None:
    assert starts(USER, SUMMARY, USER) == [False, True, False]


def test_a_sub_agents_summary_or_a_half_streamed_one_begins_nothing() -> None:
    assert starts(SUMMARY | {"is_sidechain": True}, SUMMARY | {"partial": True}) == [False, False]


def test_a_wrong_message_is_named_by_its_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        append_batch(b'{"messages": [{"role":"user","content":"x"}, {"role":"user","content":[{}]}]}')
    assert caught.value.fields == (("messages[1].content[0]", "must be an object with a string `type`"),)


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        append_batch(b'{"messages": [], "mesages": []}')
    assert caught.value.fields == (("mesages", "unknown field"),)


def test_a_batch_has_a_largest_size() -> None:
    with pytest.raises(InvalidRequest):
        append_batch(b'{"messages": [' + b"1," * 10_000 + b"1]}")


def test_what_is_no_json_is_malformed() -> None:
    with pytest.raises(Malformed):
        append_batch(b'{"messages": [')
