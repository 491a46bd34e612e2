from __future__ import annotations

import io
import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, decode_message
from compaction.core.wire import api_messages
from compaction.errors import InvalidRequest
from compaction.formats import openai_chat
from compaction.formats.transcript import Transcript

SYSTEM = {"role": "system", "content": "Be careful."}
USER = {"role": "user", "content": "How is the weather?"}


def call(identifier: Json, arguments: Json = '{"city": "Riga"}', name: str = "weather") -> dict[str, Json]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: Json, content: Json = None) -> dict[str, Json]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tells(identifier: str, content: Json = "sunny") -> dict[str, Json]:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def lines(*values: Json) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def read(data: bytes) -> tuple[Transcript, list[Message]]:
    transcript = openai_chat.read(io.BytesIO(data))
    return transcript, [decode_message(body) for body in transcript.bodies()]


def test_system_and_developer_messages_become_the_system_prompt() -> None:
    transcript, messages = read(
        lines(SYSTEM, {"role": "developer", "content": [{"type": "text", "text": "Short."}]}, USER)
    )
    assert transcript.system == "Be careful.\n\nShort."
    assert [(one.role, one.content) for one in messages] == [("user", "How is the weather?")]
    assert transcript.report.row_types == {"developer": 1, "system": 1, "user": 1}


def test_calls_of_an_answer_without_text_and_their_results_make_one_turn_each() -> None:
    _, messages = read(lines(USER, asks(call("a"), call("b", '{"city":"Oslo"}')), tells("b", "rain"), tells("a")))
    assert [one.role for one in messages] == ["user", "assistant", "user"]
    assert messages[1].content == [
        {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Riga"}},
        {"type": "tool_use", "id": "b", "name": "weather", "input": {"city": "Oslo"}},
    ]
    assert messages[2].content == [
        {"type": "tool_result", "tool_use_id": "b", "content": "rain"},
        {"type": "tool_result", "tool_use_id": "a", "content": "sunny"},
    ]


def test_text_beside_calls_stands_before_them() -> None:
    _, messages = read(lines(USER, asks(call("a"), content="Looking."), tells("a")))
    assert [block["type"] for block in messages[1].blocks()] == ["text", "tool_use"]


def test_ids_used_again_in_a_later_round_become_unique_with_their_results() -> None:
    _, messages = read(lines(USER, asks(call("call_0")), tells("call_0"), asks(call("call_0")), tells("call_0", "fog")))
    first, again = messages[1].blocks()[0]["id"], messages[3].blocks()[0]["id"]
    assert first != again
    assert messages[2].blocks()[0]["tool_use_id"] == first
    assert messages[4].blocks()[0] == {"type": "tool_result", "tool_use_id": again, "content": "fog"}


def test_ids_that_the_messages_api_refuses_are_replaced_and_still_paired() -> None:
    _, messages = read(
        lines(USER, asks(call("functions.weather:0"), call("")), tells("functions.weather:0"), tells(""))
    )
    asked = [block["id"] for block in messages[1].blocks()]
    assert [block["tool_use_id"] for block in messages[2].blocks()] == asked
    assert asked == ["functions_weather_0_2", "call"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"city": "Riga"', {"_raw_arguments": '{"city": "Riga"'}),
        ("[1]", {"_raw_arguments": "[1]"}),
        ("", {}),
        (None, {}),
        ({"city": "Riga"}, {"city": "Riga"}),
        ("{}", {}),
    ],
)
def test_arguments_that_are_no_json_object_are_kept_as_their_text(arguments: Json, expected: Json) -> None:
    _, messages = read(lines(USER, asks(call("a", arguments))))
    assert messages[1].blocks()[0]["input"] == expected


def test_an_orphan_result_stays_and_the_house_repair_turns_it_to_text() -> None:
    _, messages = read(lines(USER, tells("gone", "old news"), {"role": "assistant", "content": "Well."}))
    assert messages[1].blocks()[0]["tool_use_id"] == "gone"
    sent = api_messages(messages)
    assert "old news" in json.dumps(sent)
    assert "tool_result" not in json.dumps(sent)


def test_function_calls_of_older_versions_are_paired_by_name() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    answer = {"role": "function", "name": "weather", "content": "sunny"}
    _, messages = read(lines(USER, old, answer, old, answer))
    ids = [messages[place].blocks()[0]["id"] for place in (1, 3)]
    assert len(set(ids)) == 2
    assert [messages[place].blocks()[0]["tool_use_id"] for place in (2, 4)] == ids


def test_parts_become_blocks_and_what_cannot_be_carried_over_says_so() -> None:
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "hologram"},
    ]
    _, messages = read(lines({"role": "user", "content": parts}))
    assert messages[0].content == [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "text", "text": "[image image/svg+xml: not carried over]"},
        {"type": "text", "text": "[audio wav: not carried over]"},
        {"type": "text", "text": "[file plan.pdf: not carried over]"},
        {"type": "text", "text": "[content hologram: not carried over]"},
    ]


def test_a_refusal_is_what_the_assistant_said() -> None:
    part = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    _, messages = read(lines(USER, {"role": "assistant", "content": None, "refusal": "I will not."}, USER, part))
    assert [messages[1].content, messages[3].content] == [
        [{"type": "text", "text": "I will not."}],
        [{"type": "text", "text": "No."}],
    ]


def test_a_request_document_brings_model_and_tools() -> None:
    function = {"name": "weather", "description": "Tells it", "parameters": {"type": "object", "properties": {}}}
    document = {"model": "gpt-5", "tools": [{"type": "function", "function": function}], "messages": [SYSTEM, USER]}
    transcript, _ = read(json.dumps(document, indent=1).encode())
    assert transcript.model == "gpt-5"
    assert transcript.tools == [
        {"name": "weather", "description": "Tells it", "input_schema": {"type": "object", "properties": {}}}
    ]


def test_a_file_that_has_grown_gives_its_old_messages_the_same_names_and_calls() -> None:
    start = [USER, asks(call("x")), tells("x"), asks(call("x"), call("x"))]
    before = [*start, tells("x", "one")]
    _, old = read(lines(*before))
    transcript, new = read(lines(*before, tells("x", "two"), USER))
    assert new[: len(old) - 1] == old[:-1]
    assert old[-1].uuid in transcript.left_uuids, "the round that was short of a result is replaced by the whole one"
    assert [block["content"] for block in new[len(old) - 1].blocks()] == ["one", "two"]


def test_objects_that_are_no_messages_are_counted() -> None:
    transcript, messages = read(
        lines(SYSTEM, USER, {"role": "robot"}, {"note": 1}, {"role": "assistant", "content": None})
    )
    assert len(messages) == 1
    assert transcript.report.unusable_rows_skipped == 3


@pytest.mark.parametrize("data", [b"", b"[]", lines(SYSTEM), b"words\n"])
def test_a_file_without_conversation_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="no conversation"):
        openai_chat.read(io.BytesIO(data))


def test_a_conversation_in_each_line_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequest, match=r"each of 2 lines.*Send each line as a file of its own"):
        openai_chat.read(io.BytesIO(lines({"messages": [SYSTEM, USER]}, {"messages": [USER]})))


def test_a_file_that_changes_under_the_import_is_noticed() -> None:
    file = io.BytesIO(lines(SYSTEM, USER))
    transcript = openai_chat.read(file)
    file.seek(0)
    file.truncate()
    with pytest.raises(InvalidRequest, match="has changed"):
        list(transcript.bodies())


def test_two_conversations_that_begin_alike_are_two_sessions() -> None:
    assert read(lines(SYSTEM, USER))[0].session_id != read(lines(SYSTEM, USER, USER))[0].session_id
