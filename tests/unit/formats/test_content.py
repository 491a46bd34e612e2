from __future__ import annotations

import json

import pytest

from compaction.core.jsonbytes import Json
from compaction.formats.content import ContentFacts, content_facts


def facts(value: Json) -> ContentFacts | None:
    return content_facts(json.dumps(value).encode())


def test_a_string_is_content_with_a_length() -> None:
    assert facts("hello") == ContentFacts(text_chars=5)


def test_the_length_of_a_string_is_in_characters() -> None:
    assert content_facts('"a\\u00fc\\n€"'.encode()) == ContentFacts(text_chars=4)


def test_blocks_are_counted_by_type_and_calls_by_id() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
        {"type": "tool_result", "tool_use_id": "c0", "content": "done"},
        {"type": "image", "source": {}},
        {"type": "document", "source": {}},
        {"type": "something_new", "payload": [1, {"type": "image"}]},
    ]
    assert facts(blocks) == ContentFacts(tool_uses=("c1",), tool_results=("c0",), thinking=2, images=1, documents=1)


def test_images_and_documents_inside_a_tool_result_count() -> None:
    inner = [{"type": "text", "text": "see"}, {"type": "image", "source": {}}, {"type": "document", "source": {}}]
    found = facts([{"type": "tool_result", "tool_use_id": "c", "content": inner}])
    assert found == ContentFacts(tool_results=("c",), images=1, documents=1)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \r\n", "\u00a0"])
def test_text_of_nothing_but_white_space_is_blank(text: str) -> None:
    assert facts([{"type": "text", "text": text}]) == ContentFacts(blank_texts=1)
    assert facts(text) == ContentFacts(blank_texts=1, text_chars=len(text))


@pytest.mark.parametrize("value", [None, 5, {"type": "text"}, ["text"], [{"text": "x"}], [{"type": 3}], [None]])
def test_anything_else_is_no_content(value: Json) -> None:
    assert facts(value) is None


def test_half_a_character_and_nan_do_not_stop_the_count() -> None:
    raw = (
        b'[{"type":"text","text":"\\ud83d"},{"type":"tool_use","id":"c","input":{"v":NaN}},{"type":"text","text":" "}]'
    )
    assert content_facts(raw) == ContentFacts(tool_uses=("c",), blank_texts=1)


def test_a_call_whose_id_is_no_string_still_counts() -> None:
    assert facts([{"type": "tool_use", "id": 7}]) == ContentFacts(tool_uses=("",))


def nested(depth: int, leaf: bytes = b"") -> bytes:
    return b'[{"type":"tool_use","id":"c","input":' + b"[" * depth + leaf + b"]" * depth + b"}]"


@pytest.mark.parametrize("leaf", [b"", b"NaN"])
def test_the_body_around_a_content_may_be_nested_as_deep_as_a_message(leaf: bytes) -> None:
    """400 levels in all: the body, the list, the block and 397 arrays."""
    assert content_facts(nested(397, leaf)) == ContentFacts(tool_uses=("c",))
    assert content_facts(nested(398, leaf)) is None
    assert content_facts(nested(50_000, leaf)) is None


def test_many_brackets_that_are_not_nested_are_fine() -> None:
    assert facts("[{" * 5000) == ContentFacts(text_chars=10_000)


def test_a_number_that_no_later_reader_could_take_is_no_content() -> None:
    assert content_facts(b'[{"type":"tool_use","id":"c","input":' + b"1" * 5000 + b"}]") is None
