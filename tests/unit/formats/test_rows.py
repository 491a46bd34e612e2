from __future__ import annotations

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Usage
from compaction.formats.content import ContentFacts
from compaction.formats.rows import RawRow, Row, decode_row, name, reference, row_facts
from tests.unit.formats.log import encoded

MESSAGE = {
    "id": "msg_1",
    "model": "claude-sonnet-4-5",
    "content": "x",
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


def decoded(data: bytes) -> RawRow:
    row = decode_row(data)
    assert row is not None
    return row


def facts(**fields: Json) -> Row:
    return row_facts(decoded(encoded(fields)), line=1, offset=0, length=1, uuid="u")


def test_the_content_stays_as_the_bytes_it_stands_as() -> None:
    content = b'[ {"type":"text" , "text":"\\u00e9\\/ \xe2\x82\xac", "n": 1.50e3} ]'
    row = decoded(b'{"type":"user","message":{"role":"user","content": ' + content + b" }}")
    assert row.message is not None
    assert bytes(row.message.content) == content


@pytest.mark.parametrize(
    "odd", [b'"cwd":"\\ud83d"', b'"uuid":"\\ud83d"', b'"isMeta":"yes"', b'"x":NaN', b'"agentId":7']
)
def test_what_the_fast_reader_refuses_is_read_all_the_same(odd: bytes) -> None:
    content = b'[{"type":"text","text":"half \\ud83d, \\u00e9"},{"type":"tool_use","id":"c","input":{"v":NaN}}]'
    line = b"{" + odd + b',"type":"user","parentUuid":"p","sessionId":"s","message":{"content":' + content + b"}}"
    row = decoded(line)
    assert row.message is not None
    assert bytes(row.message.content) == content
    assert (row.type, row.parent_uuid, row.session_id) == ("user", "p", "s")


def test_members_of_another_type_than_they_should_have_are_left_out_one_by_one() -> None:
    usage = {"input_tokens": 5, "output_tokens": "many", "cache_read_input_tokens": 2.5}
    row = decoded(encoded({"type": "assistant", "uuid": 5, "message": MESSAGE | {"id": [], "usage": usage}}))
    assert (row.type, row.uuid) == ("assistant", None)
    assert row.message is not None
    assert (row.message.id, row.message.model, bytes(row.message.content)) == (None, "claude-sonnet-4-5", b'"x"')
    assert row.message.usage is not None
    assert (row.message.usage.input_tokens, row.message.usage.output_tokens) == (5, None)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"7", b'{"type":"user"', b'{"a":1}{"b":2}', b'{"a":"\x01"}', b'{"a":' + b"[" * 5000]
)
def test_what_is_not_one_json_object_is_no_row(data: bytes) -> None:
    assert decode_row(data) is None


@pytest.mark.parametrize(
    ("type_", "subtype", "kind"),
    [
        ("user", None, "user"),
        ("user", "odd", "user"),
        ("system", "compact_boundary", "system:compact_boundary"),
        ("system", None, "system"),
        ("file-history-snapshot", None, "file-history-snapshot"),
        ("", None, "unknown"),
        ("a secret text", None, "unknown"),
        ("x" * 61, None, "unknown"),
    ],
)
def test_a_kind_is_a_short_name_and_never_content(type_: str, subtype: str | None, kind: str) -> None:
    assert decoded(encoded({"type": type_, "subtype": subtype})).kind == kind


def test_an_assistant_row_is_remembered_with_its_message() -> None:
    row = facts(type="assistant", uuid="u", parentUuid="p", message=MESSAGE)
    assert (row.message_id, row.model, row.usage) == ("msg_1", "claude-sonnet-4-5", Usage(3, 4))
    assert row.content == ContentFacts(text_chars=1)
    assert row.is_stored


def test_a_user_row_has_no_message_id_and_no_usage() -> None:
    row = facts(type="user", message=MESSAGE)
    assert (row.message_id, row.usage) == (None, None)


@pytest.mark.parametrize(("count", "kept"), [(-1, 0), (None, 0), (10**9, 10**9), (10**9 + 1, 0), (10**30, 0)])
def test_a_token_count_that_cannot_be_true_counts_as_none(count: int | None, kept: int) -> None:
    row = facts(type="assistant", message=MESSAGE | {"usage": {"input_tokens": count}})
    assert row.usage == Usage(input_tokens=kept)


def test_an_answer_that_claude_code_made_itself_is_not_stored() -> None:
    assert not facts(type="assistant", message=MESSAGE | {"model": "<synthetic>"}).is_stored
    assert not facts(type="assistant", isApiErrorMessage=True, message=MESSAGE).is_stored


@pytest.mark.parametrize("message", [None, {}, {"content": None}, {"content": 5}, {"content": [{"text": "x"}]}])
def test_a_row_without_usable_content_is_not_stored(message: Json) -> None:
    assert not facts(type="user", message=message).is_stored


def test_other_rows_are_part_of_the_chain_and_not_of_the_conversation() -> None:
    row = facts(type="progress", uuid="u", parentUuid="p", message=MESSAGE)
    assert (row.parent_uuid, row.content, row.in_conversation) == ("p", None, False)


def test_a_null_parent_is_a_root_and_an_unknown_one_is_not() -> None:
    assert not facts(type="user", parentUuid=None).unlinked
    assert facts(type="user").unlinked
    assert facts(type="user", parentUuid=["odd"]).unlinked


def test_an_id_that_no_envelope_takes_becomes_a_digest_that_still_links() -> None:
    assert reference("msg with spaces") == reference("msg with spaces")
    assert reference("half \ud83d") != reference("half \ud83e")
    assert name(reference("x" * 500)) is not None
    assert reference("plain-1") == "plain-1"
    assert (reference(""), reference(None), reference(7)) == (None, None, None)
