"""Request bodies: bounded before and while they arrive, unpacked under the same bound, parsed in a thread when big."""

from __future__ import annotations

import asyncio
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO, TypeVar, cast

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import Malformed, UnsupportedMediaType, invalid
from compaction.core import json_values
from compaction.errors import TooLarge

Result = TypeVar("Result")
Shape = TypeVar("Shape", bound=BaseModel)

SMALLER = "Send it in smaller parts; what comes inline may be stored as a session and appended in batches."
THREAD_FROM_BYTES = 2**20  # JSON work on 1 MB takes 2 to 5 ms (facts/performance.md); more would hold up other requests
UNPACK_STEP_BYTES = 2**20  # one step of a packed body, so that a bomb meets the limit and not our memory
GZIP_WINDOW_BITS = 31  # zlib's way to say: gzip header and checksum
MAX_MEMBERS = 10_000  # of a gzip body: 512 MiB in bgzip's blocks of 64 KiB; an empty one is 20 bytes and 5 µs of CPU
SPOOL_BUFFER_BYTES = 2**20  # written to disk at a time


async def think(size_bytes: int, work: Callable[..., Result], *args: object) -> Result:
    """`work(*args)`, in a thread when the `size_bytes` it chews on would hold up the loop."""
    if size_bytes >= THREAD_FROM_BYTES:
        return await asyncio.to_thread(work, *args)
    return work(*args)


async def read(request: Request, limit_bytes: int, limit_values: int = json_values.MAX_BODY_VALUES) -> bytes:
    """The whole JSON body, not decoded yet. Raises UnsupportedMediaType, TooLarge (bytes, JSON values) or Malformed."""
    require_json(request)
    body = bytearray()
    async for chunk in stream(request, limit_bytes):
        body += chunk
    whole = bytes(body)
    del body
    if await think(len(whole), json_values.holds_more, whole, limit_values):
        raise TooLarge(f"The body holds more than {limit_values} JSON values. {SMALLER}")
    return whole


async def parse(body: bytes, shape: type[Shape]) -> Shape:
    """The JSON in `body` as `shape`. Raises Malformed or InvalidRequest."""
    try:
        return await think(len(body), shape.model_validate_json, body)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise Malformed("The body is not JSON.") from None
        raise invalid(error) from None


def shaped(shape: type[Shape], value: object) -> Shape:
    """Decoded JSON as `shape`. Raises InvalidRequest with the paths that are wrong."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from None


async def spool(request: Request, limit_bytes: int) -> BinaryIO:
    """The body in a temporary file at its start; closing it deletes it. Raises TooLarge, Malformed."""
    file = cast("BinaryIO", await asyncio.to_thread(tempfile.TemporaryFile, prefix="compactd-import-"))
    try:
        buffer = bytearray()
        async for chunk in stream(request, limit_bytes):
            buffer += chunk
            if len(buffer) >= SPOOL_BUFFER_BYTES:
                await asyncio.to_thread(file.write, bytes(buffer))
                buffer.clear()
        await asyncio.to_thread(file.write, bytes(buffer))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def stream(request: Request, limit_bytes: int) -> AsyncIterator[bytes]:
    """The body in pieces, unpacked when it came as gzip. Raises TooLarge by its announced and by its real size."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"identity", "gzip", "x-gzip"}:
        raise UnsupportedMediaType("Send the body plain or with Content-Encoding: gzip.")
    refuse_announced(request, limit_bytes)
    pieces = request.stream() if coding == "identity" else _unpacked(request.stream(), limit_bytes)
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        yield piece


def refuse_announced(request: Request, limit_bytes: int) -> None:
    """Raises TooLarge when the headers already say that the body is over the limit: nothing of it is read then."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limit_bytes:
        raise _too_large(limit_bytes)


def refuse_large(body: bytes, limit_bytes: int) -> None:
    """Raises TooLarge for a body of a kind that may be no larger than this."""
    if len(body) > limit_bytes:
        raise _too_large(limit_bytes)


def require_json(request: Request) -> None:
    """Raises UnsupportedMediaType unless the body is declared as JSON."""
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMediaType


async def _unpacked(chunks: AsyncIterator[bytes], limit_bytes: int) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(GZIP_WINDOW_BITS)
    packed_size, members = 0, 1
    async for chunk in chunks:
        packed_size += len(chunk)
        if packed_size > limit_bytes:
            raise _too_large(limit_bytes)
        waiting = chunk
        while waiting:
            if unpacker.eof:  # a gzip file may consist of several members
                unpacker = zlib.decompressobj(GZIP_WINDOW_BITS)
                members += 1
                if members > MAX_MEMBERS:
                    raise TooLarge(f"The gzip body has more than {MAX_MEMBERS} members. Pack it in one piece.")
            yield _step(unpacker, waiting)
            await asyncio.sleep(0)
            waiting = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    if packed_size and not unpacker.eof:
        raise Malformed("The gzip body ends too early.")


def _step(unpacker: zlib._Decompress, packed: bytes) -> bytes:
    try:
        return unpacker.decompress(packed, UNPACK_STEP_BYTES)
    except zlib.error:
        raise Malformed("The body is not gzip.") from None


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The body is larger than the {limit_bytes} bytes this server takes. Send it in smaller parts.")
