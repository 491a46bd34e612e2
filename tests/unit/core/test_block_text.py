"""Blocks as plain text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.core.block_text import block_text, content_text, input_text, media_text, name_of
from tests.unit.core.samples import PICTURE, Block, image, result, text, thinking, use


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (text("hello"), "hello"),
        ({"type": "text", "text": {"odd": 1}}, '{"odd":1}'),
        (thinking(), ""),
        ({"type": "redacted_thinking", "data": "XYZ"}, ""),
        (use("t1", "Bash", {"command": "ls"}), '[Tool call Bash] {"command":"ls"}'),
        (use("t1", "", "raw input"), "[Tool call unknown] raw input"),
        (result("t1", "fine"), "[tool result] fine"),
        (result("t1", "boom", is_error=True), "[tool result (error)] boom"),
        (result("t1", ""), ""),
        ({"type": "advisor_tool_result", "tool_use_id": "s", "content": {"type": "x", "text": "use a queue"}},
         "[advisor tool result] use a queue"),
        ({"type": "hologram", "depth": 3}, '[hologram] {"depth":3}'),
    ],
)  # fmt: skip
def test_each_kind_of_block_is_told(block: Block, told: str) -> None:
    assert block_text(block) == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, ""),
        ("as it is \0", "as it is \0"),
        ([text("a"), "b", text(" "), 3, None], "a\nb\n3\nnull"),
        ([image(), thinking()], "[image omitted: image/png, 9 bytes]"),
        ({"type": "result", "stdout": "x", "encrypted_stdout": "secret"}, '{"type":"result","stdout":"x"}'),
        ([{"type": "web_search_result", "encrypted_content": "zzz"}], '{"type":"web_search_result"}'),
        (7, "7"),
    ],
)  # fmt: skip
def test_content_is_told_piece_by_piece(content: Any, told: str) -> None:  # noqa: ANN401 - any JSON
    assert content_text(content) == told


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (image(data="A" * 4_000), "[image omitted: image/png, 2 KB]"),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
         "[image omitted: https://example.org/a.png]"),
        ({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AAAA"}}, "[image omitted]"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_7"}}, "[image omitted: file_7]"),
        ({"type": "image"}, "[image omitted]"),
        ({"type": "document", "title": "a \n plan.pdf",
          "source": {"type": "base64", "media_type": "application/pdf", "data": ""}},
         '[document "a plan.pdf" omitted: application/pdf, 0 bytes]'),
        ({"type": "document", "title": " ", "source": {"type": "text", "data": "the words"}}, "[document]\nthe words"),
        ({"type": "document", "title": "t", "source": {"type": "content", "content": [text("a"), image()]}},
         '[document "t"]\na\n{"type":"image","source":' + json.dumps(PICTURE, separators=(",", ":")) + "}"),
    ],
)  # fmt: skip
def test_media_become_markers_and_text_documents_their_text(block: Block, told: str) -> None:
    assert media_text(block) == told


def test_a_long_address_is_cut() -> None:
    assert len(media_text({"type": "image", "source": {"url": "https://example.org/" + "x" * 900}})) < 250


def test_a_call_says_its_name_on_one_line_and_its_input() -> None:
    assert name_of(use("t", "a\nb")) == "a b"
    assert name_of(use("t", 3)) == "unknown"
    assert input_text({"type": "tool_use"}) == "{}"
    assert input_text(use("t", "x", {"data": "QUJD" * 1_000})).count("3,872 characters of encoded data") == 1
