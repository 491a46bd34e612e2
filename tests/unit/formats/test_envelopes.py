from __future__ import annotations

import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Usage, decode_message
from compaction.formats.envelopes import boundary_body, join, message_body
from compaction.formats.rows import RawRow, Row, decode_row, row_facts
from tests.unit.formats.log import encoded

USAGE = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 4}


def pair(data: bytes) -> tuple[RawRow, Row]:
    raw = decode_row(data)
    assert raw is not None
    return raw, row_facts(raw, line=1, offset=0, length=len(data), uuid="u-1")


def boundary(**fields: Json) -> dict[str, Json]:
    row = {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": "p-9"} | fields
    body: dict[str, Json] = json.loads(boundary_body(*pair(encoded(row))))
    return body


def test_an_assistant_row_becomes_its_envelope() -> None:
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "hi"}], "usage": USAGE}
    fields = {"type": "assistant", "parentUuid": "p-1", "timestamp": "2026-05-01T10:00:00.000Z", "message": message}
    found = decode_message(message_body(*pair(encoded(fields)), is_compact_summary=False))
    assert (found.uuid, found.parent_uuid, found.role, found.api_message_id) == ("u-1", "p-1", "assistant", "msg_1")
    assert (found.created_at, found.model) == ("2026-05-01T10:00:00.000Z", "claude-sonnet-4-5")
    assert found.usage == Usage(3, 4, 90, 7)
    assert found.content == [{"type": "text", "text": "hi"}]


def test_flags_are_told_only_where_they_are_set() -> None:
    row = pair(encoded({"type": "user", "isMeta": True, "isSidechain": True, "message": {"content": "x"}}))
    assert json.loads(message_body(*row, is_compact_summary=True)) == {
        "uuid": "u-1",
        "role": "user",
        "content": "x",
        "is_meta": True,
        "is_compact_summary": True,
    }


def test_the_content_is_cut_out_and_never_written_anew() -> None:
    content = b'[{"type":"text","text":"\\u00e9 \\/ \xe2\x82\xac \\ud83d","n":1.50}, {"type":"new","v":NaN} ]'
    body = message_body(*pair(b'{"type":"user","message":{"content":' + content + b"}}"), is_compact_summary=False)
    assert body == b'{"uuid":"u-1","role":"user","content":' + content + b"}"


def test_a_date_that_no_envelope_takes_is_left_out() -> None:
    row = pair(encoded({"type": "user", "timestamp": "yesterday at noon", "message": {"content": "x"}}))
    assert "created_at" not in json.loads(message_body(*row, is_compact_summary=False))


def test_a_boundary_is_a_system_message_with_our_words_for_its_facts() -> None:
    assert boundary(content="Compacted here", compactMetadata={"trigger": "auto", "preTokens": 155_000}) == {
        "uuid": "u-1",
        "parent_uuid": "p-9",
        "role": "system",
        "content": "Compacted here",
        "metadata": {"kind": "compact_boundary", "trigger": "auto", "pre_tokens": 155_000, "source": "claude_code"},
    }


def test_a_micro_boundary_tells_what_was_cleared() -> None:
    told = {"trigger": "auto", "preTokens": 50_000, "tokensSaved": 20_000, "compactedToolIds": ["c1", "c2", 3]}
    assert boundary(subtype="microcompact_boundary", microcompactMetadata=told)["metadata"] == {
        "kind": "microcompact_boundary",
        "trigger": "auto",
        "pre_tokens": 50_000,
        "tokens_saved": 20_000,
        "compacted_tool_ids": ["c1", "c2"],
        "source": "claude_code",
    }


@pytest.mark.parametrize("tokens", [-1, True, 1.5, "many", 10**30, None])
def test_facts_of_a_boundary_that_make_no_sense_are_left_out(tokens: Json) -> None:
    odd = {"trigger": "x" * 41, "preTokens": tokens}
    assert boundary(content=["odd"], compactMetadata=odd)["metadata"] == {
        "kind": "compact_boundary",
        "source": "claude_code",
    }
    assert boundary(content=["odd"])["content"] == ""


def test_joining_keeps_bytes_as_they_are_and_leaves_out_what_is_none() -> None:
    assert join({"a": b"[ 1 ]", "b": None, "c": "\ud83d", "d": {"e": 1}}) == b'{"a":[ 1 ],"c":"\\ud83d","d":{"e":1}}'
