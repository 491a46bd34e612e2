from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable

import pytest
from starlette.requests import Request
from starlette.types import Message

from api import bodies
from api.errors import Malformed, UnsupportedMediaType
from compaction.errors import TooLarge

pytestmark = pytest.mark.anyio

LIMIT_BYTES = 1_000


def request(chunks: Iterable[bytes], **headers: str) -> Request:
    """A request whose body comes in `chunks`; underscores in the names of headers stand for hyphens."""
    waiting = iter(chunks)

    async def receive() -> Message:
        chunk = next(waiting, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, receive)


async def read(chunks: Iterable[bytes], **headers: str) -> bytes:
    return b"".join([piece async for piece in bodies.stream(request(chunks, **headers), LIMIT_BYTES)])


async def test_a_body_up_to_the_limit_passes() -> None:
    assert await read([b"x" * 600, b"y" * 400]) == b"x" * 600 + b"y" * 400
    assert await read([]) == b""


@pytest.mark.parametrize("announced", ["1001", "9" * 400])
async def test_an_announced_size_over_the_limit_is_refused(announced: str) -> None:
    with pytest.raises(TooLarge):
        await read([], content_length=announced)


async def test_a_real_size_over_the_limit_is_refused_whatever_was_announced() -> None:
    with pytest.raises(TooLarge):
        await read([b"x" * 600, b"y" * 401], content_length="10")


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
async def test_gzip_is_unpacked_however_it_is_cut(size: int) -> None:
    packed = gzip.compress(b"a" * 500, mtime=0) + gzip.compress(
        b"b" * 300, mtime=0
    )  # two members, as log rotation writes them
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert await read(chunks, content_encoding="gzip") == b"a" * 500 + b"b" * 300


async def test_a_bomb_is_refused_at_the_limit() -> None:
    with pytest.raises(TooLarge):
        await read([gzip.compress(b"\0" * 50_000_000, mtime=0)], content_encoding="gzip")


@pytest.mark.parametrize(
    "packed", [b"plain", gzip.compress(b"a" * 500, mtime=0)[:-3], zlib.compress(b"a"), b"\x1f\x8b"]
)
async def test_what_is_no_whole_gzip_is_refused(packed: bytes) -> None:
    with pytest.raises(Malformed):
        await read([packed], content_encoding="gzip")


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate", "x"])
async def test_other_codings_are_refused(coding: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        await read([b"x"], content_encoding=coding)


async def test_a_spooled_body_stands_at_its_start() -> None:
    with await bodies.spool(request([b"x" * 600, b"y"]), LIMIT_BYTES) as file:
        assert file.read() == b"x" * 600 + b"y"
