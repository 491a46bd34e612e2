"""Messages that came as a list: which format they are, and that nothing of them is passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.errors import InvalidRequest
from compaction.formats import listed
from compaction.formats.detect import detect_listed

USER = b'{"role": "user", "content": "Hi \\u00e9"}'
REPLY = b'{"role":"assistant","content":[{"type":"text","text":"Hello."}]}'
SYSTEM = b'{"role":"system","content":"Be brief."}'
CALL = (
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
    b'"function":{"name":"ls","arguments":"{}"}}]}'
)
TOOL = b'{"role":"tool","tool_call_id":"c1","content":"a.py"}'
BOUNDARY = b'{"role":"system","content":"","metadata":{"kind":"compact_boundary"}}'
ROW = b'{"type":"user",\r\n"uuid":"r1","sessionId":"s","message":{"role":"user",\n"content":"Rename it."}}'
FUNCTIONS = [{"type": "function", "function": {"name": "ls"}}]


@pytest.mark.parametrize(
    ("messages", "tools", "name"),
    [
        ([USER, REPLY], None, "anthropic_messages"),
        ([BOUNDARY, USER], None, "anthropic_messages"),
        ([USER, SYSTEM, REPLY], None, "openai_chat"),
        ([USER] * 300 + [CALL, TOOL], None, "openai_chat"),
        ([USER, REPLY], FUNCTIONS, "openai_chat"),
        ([ROW], None, "claude_code"),
        ([USER, ROW], None, "anthropic_messages"),
        ([b"7"], None, "anthropic_messages"),
        ([], FUNCTIONS, "anthropic_messages"),
    ],
)
def test_the_format_is_told_by_all_messages_and_by_the_tools(messages: list[bytes], tools: Any, name: str) -> None:  # noqa: ANN401 - JSON
    assert detect_listed(messages, tools) == name


def test_messages_of_the_messages_api_pass_as_the_bytes_they_are() -> None:
    found = listed.read([USER, REPLY], tools=[{"name": "ls"}])
    assert found.bodies == (USER, REPLY)
    assert (found.system, found.tools) == (None, [{"name": "ls"}])


def test_a_format_that_is_named_goes_before_what_it_looks_like() -> None:
    assert listed.read([SYSTEM, USER], format_name="anthropic_messages").bodies == (SYSTEM, USER)


def test_a_chat_gives_its_system_prompt_and_its_rounds() -> None:
    found = listed.read([SYSTEM, USER, CALL, TOOL], tools=FUNCTIONS)
    assert found.system == "Be brief."
    assert [json.loads(body)["role"] for body in found.bodies] == ["user", "assistant", "user"]
    assert found.tools == [{"name": "ls", "input_schema": {"type": "object", "properties": {}}}]


def test_rows_of_a_log_may_be_spread_over_lines() -> None:
    [body] = listed.read([ROW]).bodies
    assert json.loads(body)["content"] == "Rename it."


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (b"7", "messages[1]"),
        (b'{"role":"robot","content":"x"}', "messages[1].role"),
        (b'{"role":"user"}', "messages[1].content"),
        (b'{"role":"assistant","content":null}', "messages[1].content"),
        (b'{"role":"assistant","tool_calls":[7]}', "messages[1].tool_calls[0]"),
        (b'{"role":"user","content":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "messages[1]"),
    ],
)
def test_what_is_no_chat_message_is_refused_by_its_place(message: bytes, path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        listed.read([SYSTEM, message, USER])
    assert [name for name, _ in refused.value.fields] == [path]


def test_a_log_without_a_conversation_is_refused() -> None:
    row = b'{"type":"summary","leafUuid":"r1","summary":"x"}'
    with pytest.raises(InvalidRequest) as refused:
        listed.read([row])
    assert [name for name, _ in refused.value.fields] == ["messages"]
