from __future__ import annotations

import io
import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest
from compaction.formats.detect import detect
from tests.unit.formats.log import Log

USER = {"role": "user", "content": "hi"}


def lines(*values: Json) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def told(data: bytes) -> str:
    return detect(io.BytesIO(data))


def test_a_claude_code_log_is_known_by_its_rows() -> None:
    log = Log()
    log.user()
    assert told(log.data) == "claude_code"


@pytest.mark.parametrize(
    "first",
    [
        b"\x00" * 100,
        b"garbage",
        b'{"type":"summary","summary":"A title","leafUuid":"x"}',
        b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}',
        b'{"type":"progress","uuid":"u"}',
    ],
)
def test_what_stands_before_the_first_message_does_not_hide_a_log(first: bytes) -> None:
    log = Log()
    log.line(first)
    log.user()
    assert told(log.data) == "claude_code"


def test_glued_rows_are_seen() -> None:
    log = Log()
    log.user()
    log.assistant()
    assert told(log.lines[0] + log.lines[1]) == "claude_code"


@pytest.mark.parametrize(
    "data",
    [
        lines(USER),
        lines(USER, {"role": "assistant", "content": [{"type": "text", "text": "yes"}], "uuid": "u"}),
        b"\x00\x00\n" + lines(USER),
        lines([USER]),
        lines({"model": "m", "messages": [USER]}),
        json.dumps({"messages": [USER]}, indent=2).encode(),
        json.dumps([USER, USER], indent=2).encode(),
        lines({"role": "system", "content": "", "metadata": {"kind": "compact_boundary"}}, USER),
    ],
)
def test_messages_of_the_api_are_known_as_lines_list_or_document(data: bytes) -> None:
    assert told(data) == "anthropic_messages"


@pytest.mark.parametrize(
    "data",
    [
        lines({"role": "system", "content": "Be kind."}, USER),
        lines([USER, {"role": "assistant", "content": None, "tool_calls": []}]),
        lines({"messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}),
        lines(USER, {"role": "developer", "content": "x"}),
        lines({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a"}}]}),
        lines({"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]}),
    ],
)
def test_open_ai_chat_is_known_by_its_roles_calls_parts_and_tools(data: bytes) -> None:
    assert told(data) == "openai_chat"


def test_a_conversation_in_each_line_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequest, match="in each of 2 lines"):
        told(lines({"messages": [USER]}, {"messages": [USER]}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"hello\nworld\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"[]",
        b"{}",
        b"[1, 2]",
        lines({"messages": [{"type": "user", "content": "a gemini turn"}]}),
        lines([{"id": 1, "source": "agent", "action": "run"}]),
        lines({"type": "user", "text": "no message"}),
        lines({"role": "robot", "content": "x"}),
        lines({"role": ["user"], "content": "x"}, {"type": ["user"], "uuid": "u"}),
    ],
)
def test_any_other_file_is_refused_with_the_formats_we_know(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"unknown\. Known formats: claude_code, anthropic_messages"):
        told(data)
