from __future__ import annotations

import io
import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage, decode_message
from compaction.errors import InvalidRequest, TooLarge
from compaction.formats import anthropic_messages, collection
from compaction.formats.report import LastUsage
from compaction.formats.transcript import Transcript

QUESTION = {"role": "user", "content": "Where is the ledger?"}
ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "On the shelf."}]}


def read(data: bytes) -> tuple[Transcript, list[Message]]:
    transcript = anthropic_messages.read(io.BytesIO(data))
    return transcript, [decode_message(body) for body in transcript.bodies()]


def lines(*values: Json) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_lines_become_messages_with_their_envelopes() -> None:
    usage = {"input_tokens": 7, "output_tokens": 2}
    told = ANSWER | {"uuid": "u-2", "model": "claude-haiku-4-5", "usage": usage, "api_message_id": "m-1"}
    transcript, (first, second) = read(lines(QUESTION | {"uuid": "u-1", "is_meta": True}, told))
    assert (first.uuid, first.is_meta, first.content) == ("u-1", True, "Where is the ledger?")
    assert (second.api_message_id, second.usage) == ("m-1", Usage(7, 2))
    assert (transcript.model, transcript.report.meta_user_rows) == ("claude-haiku-4-5", 1)
    assert transcript.report.last_usage == LastUsage(
        line=2,
        input_tokens=7,
        output_tokens=2,
        cache_read_input_tokens=0,
        cache_creation_input_tokens=0,
        prompt_tokens=7,
    )


def test_equal_lines_without_uuids_stay_two_messages_and_keep_their_uuids_when_the_file_grows() -> None:
    first = read(lines(QUESTION, ANSWER, QUESTION))[1]
    again = read(lines(QUESTION, ANSWER, QUESTION, ANSWER))[1]
    assert len({one.uuid for one in first}) == 3
    assert again[:3] == first
    assert len({one.uuid for one in again}) == 4


def test_a_line_of_nul_bytes_is_skipped_and_told_and_what_follows_is_kept() -> None:
    transcript, messages = read(lines(QUESTION) + b"\x00" * 300 + b"\n" + lines(ANSWER, QUESTION))
    assert [one.role for one in messages] == ["user", "assistant", "user"]
    assert transcript.report.malformed.lines == (2,)
    assert transcript.report.malformed.chars_lost == 300


def test_damaged_lines_and_objects_that_are_no_messages_are_counted() -> None:
    data = lines(QUESTION) + b'{"role":"user","cont\n' + lines({"note": 1}, {"role": "user", "content": None}, ANSWER)
    transcript, messages = read(data)
    assert len(messages) == 2
    report = transcript.report
    assert (report.malformed.line_count, report.unusable_rows_skipped, report.objects, report.lines) == (1, 2, 4, 5)
    assert report.row_types == {"assistant": 1, "unknown": 1, "user": 2}


def test_nan_in_a_tool_input_is_imported_as_it_stands() -> None:
    call = b'{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Calc","input":{"v":NaN}}]}'
    bodies = list(anthropic_messages.read(io.BytesIO(lines(QUESTION) + call)).bodies())
    assert bodies[1].endswith(call[1:])


def test_a_document_brings_system_tools_model_and_session() -> None:
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    document = {"session_id": "book-7", "model": "claude-haiku-4-5", "system": "Be kind.", "tools": tools}
    transcript, messages = read(json.dumps(document | {"messages": [QUESTION, ANSWER]}, indent=1).encode())
    assert (transcript.session_id, transcript.named_by_file, transcript.model) == ("book-7", True, "claude-haiku-4-5")
    assert (transcript.system, transcript.tools) == ("Be kind.", tools)
    assert [one.role for one in messages] == ["user", "assistant"]


def test_a_list_is_a_document_without_anything_around() -> None:
    transcript, messages = read(b' [ {"role":"user", "content":"hi"} ]')
    assert (messages[0].content, transcript.system, transcript.model) == ("hi", None, None)


def test_elements_of_a_document_that_are_no_messages_are_skipped_and_counted() -> None:
    transcript, messages = read(json.dumps([QUESTION, 5, {"role": "user"}, ANSWER]).encode())
    assert len(messages) == 2
    assert transcript.report.unusable_rows_skipped == 2


def test_a_session_without_a_name_is_named_after_what_it_holds() -> None:
    one, same, other = (read(data)[0] for data in (lines(QUESTION), lines(QUESTION), lines(QUESTION, ANSWER)))
    assert one.session_id == same.session_id
    assert other.session_id != one.session_id, "two conversations may begin alike"
    assert not one.named_by_file


def test_a_first_message_with_its_own_uuid_names_the_session_for_good() -> None:
    first = QUESTION | {"uuid": "u-1"}
    assert read(lines(first))[0].session_id == read(lines(first, ANSWER))[0].session_id


def test_the_final_version_of_a_partial_message_takes_its_place() -> None:
    partial = ANSWER | {"uuid": "u-2", "partial": True, "content": "On the"}
    transcript, messages = read(lines(QUESTION, partial, ANSWER | {"uuid": "u-2"}, QUESTION, partial))
    assert [one.partial for one in messages] == [False, False, False]
    assert messages[1].content == ANSWER["content"]
    assert transcript.report.duplicate_uuid_row_count == 2


def test_the_current_window_begins_behind_the_last_boundary() -> None:
    boundary = {"role": "system", "content": "", "metadata": {"kind": "compact_boundary"}}
    transcript, messages = read(lines(QUESTION, ANSWER, boundary, QUESTION))
    assert len(messages) == 4
    report = transcript.report
    assert (report.full_history.messages, report.current_window.messages) == (3, 1)


def test_sidechain_messages_are_stored_but_no_part_of_the_counts() -> None:
    transcript, messages = read(lines(QUESTION, ANSWER | {"is_sidechain": True}))
    assert len(messages) == 2
    assert transcript.report.full_history.messages == 1


@pytest.mark.parametrize("data", [b"", b"[]", b'{"messages":[]}', b'{"role":"system","content":"alone"}', b"text"])
def test_a_file_without_a_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="holds no conversation"):
        anthropic_messages.read(io.BytesIO(data))


def test_more_messages_than_memory_should_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MAX_MESSAGES", 2)
    with pytest.raises(TooLarge, match="more than 2 messages"):
        read(lines(QUESTION, ANSWER, QUESTION))


def test_a_file_that_changes_under_the_import_is_noticed() -> None:
    file = io.BytesIO(lines(QUESTION, ANSWER))
    transcript = anthropic_messages.read(file)
    file.seek(0)
    file.write(b"#" * 20)
    with pytest.raises(InvalidRequest, match="has changed"):
        list(transcript.bodies())
