"""A body on its way out."""

from __future__ import annotations

import gc
import json

import pytest

from compaction.summarizers.request_body import PIECE_BYTES, Upload, counting, streaming
from tests.unit.summarizers.stage import Marked

BODY = b'{"model":"m","max_tokens":5,"stream":false,"messages":[{"role":"user","content":"a, {\\"b\\": 1}"}]}'


def test_streaming_is_switched_on_and_nothing_else_changes() -> None:
    assert json.loads(streaming(BODY)) == json.loads(BODY) | {"stream": True}
    assert b'"messages":[{"role":"user","content":"a, {\\"b\\": 1}"}]' in streaming(BODY)


def test_a_body_that_streams_already_is_sent_as_it_is() -> None:
    body = BODY.replace(b"false", b"true")
    assert streaming(body) is body


def test_count_tokens_gets_the_prompt_and_nothing_that_it_refuses() -> None:
    assert set(json.loads(counting(BODY))) == {"model", "messages"}


def test_half_a_character_in_the_body_does_no_harm() -> None:
    body = b'{"max_tokens":5,"messages":[{"content":"\\ud83d"}]}'
    assert counting(body) == b'{"messages":[{"content":"\\ud83d"}]}'


@pytest.mark.anyio
@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
async def test_the_pieces_make_the_body_and_each_sent_one_is_told(size: int) -> None:
    body = bytes(index % 251 for index in range(size))
    upload, told = Upload(body), [0]

    def sent() -> None:
        told[0] += 1

    pieces = [piece async for piece in upload.pieces(sent, lambda: None)]
    assert b"".join(pieces) == body
    assert (upload.size, told[0]) == (size, len(pieces))
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)


@pytest.mark.anyio
async def test_nothing_holds_the_body_once_it_is_sent() -> None:
    marks: list[bool] = []
    body = Marked(b"x" * 10, marks)
    upload = Upload(body)
    del body
    pieces = upload.pieces(lambda: None, lambda: None)
    assert len(await anext(pieces)) == 10
    assert [piece async for piece in pieces] == []
    gc.collect()
    assert marks == [True]
    assert upload.size == 10
