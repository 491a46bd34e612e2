from __future__ import annotations

import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.formats.plain import PlainMessage, decode_object, plain_message


def plain(data: bytes) -> PlainMessage | None:
    return plain_message(data, decode_object(data) or {})


def found(value: dict[str, Json]) -> PlainMessage:
    message = plain(json.dumps(value).encode())
    assert message is not None
    return message


def test_an_object_with_its_own_uuid_is_stored_as_it_stands() -> None:
    data = b'{ "uuid": "u-1", "role": "user", "content": "caf\\u00e9", "is_meta": true, "extra": 1.0 }'
    message = plain(data)
    assert message is not None
    assert message.named("other") == data
    assert message.message.is_meta


def test_an_object_without_a_uuid_gets_one_in_front_and_nothing_else_changes() -> None:
    message = plain(b'{"role": "user", "content": "x"}')
    assert message is not None
    assert message.named("u-9") == b'{"uuid":"u-9","role": "user", "content": "x"}'


def test_a_null_uuid_is_no_uuid() -> None:
    assert json.loads(found({"uuid": None, "role": "user", "content": "x"}).named("u-9"))["uuid"] == "u-9"


def test_an_envelope_field_that_is_wrong_is_left_out_and_the_others_stay() -> None:
    value = {"uuid": "u-1", "role": "user", "content": "x", "created_at": 17, "is_sidechain": True, "usage": "none"}
    message = found(value)
    assert json.loads(message.named("-")) == {"uuid": "u-1", "role": "user", "content": "x", "is_sidechain": True}
    assert message.message.is_sidechain


def test_mending_an_envelope_leaves_the_content_alone() -> None:
    message = plain(b'{"role":"user","model":5,"content": [{"type":"text", "text":"\\u00e9 \\ud83d"}] }')
    assert message is not None
    assert message.body == b'{"role":"user","content":[{"type":"text", "text":"\\u00e9 \\ud83d"}]}'


def test_nan_in_a_tool_input_is_taken_as_it_stands() -> None:
    data = b'{"uuid":"u","role":"assistant","content":[{"type":"tool_use","id":"c","name":"Calc","input":{"v":NaN}}]}'
    message = plain(data)
    assert message is not None
    assert message.named("-") == data
    assert message.content.tool_uses == ("c",)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"role": "user"},
        {"role": "tool", "content": "x"},
        {"role": "user", "content": 5},
        {"role": ["user"], "content": ""},
    ],
)
def test_without_a_role_and_content_there_is_no_message(value: dict[str, Json]) -> None:
    assert plain(json.dumps(value).encode()) is None


@pytest.mark.parametrize("data", [b"[]", b"NaN", b"{", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_what_is_no_object_is_none(data: bytes) -> None:
    assert decode_object(data) is None
