"""Bodies as they lie in `bytea`: one byte that names the codec, then the data; it comes back byte for byte.

0  raw     the bytes themselves: small bodies, and those that do not shrink
1  zstd    one zstandard frame with its content size
2  sealed  encrypted (`store.sealing`); inside is a body of the kinds above

A process says once, when it starts, with which keys it works (`use_keys`); without any it writes plain bodies. What was
written before keys were set, or with older ones, is read all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import zstandard

from compaction import errors
from compaction.core.body_keys import BodyKey

RAW = b"\x00"
ZSTD = b"\x01"
SEALED = b"\x02"

MIN_COMPRESSED_BYTES = 1024  # below it a frame saves a few hundred bytes and costs more than the read it spares
ZSTD_LEVEL = 1  # measured on agent messages: level 3 saves 3 % more for 1.6 times the CPU


class _Codec(threading.local):
    """zstd contexts cost more to make than to use and are not for two threads at once: one pair per thread."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_codec = _Codec()


class _Seals(Protocol):
    head: bytes

    def seal(self, data: bytes) -> bytes: ...

    def open(self, sealed: memoryview) -> bytes: ...


_sealer: _Seals | None = None


def use_keys(keys: Sequence[BodyKey]) -> None:
    """From now on bodies are sealed with the first key and opened with all of them; none: nothing is sealed."""
    global _sealer  # noqa: PLW0603 - one process has one set of keys, and every body passes here
    if keys:
        from compaction.store.sealing import Sealer  # noqa: PLC0415 - nobody without keys loads OpenSSL a second time

        _sealer = Sealer(keys)
    else:
        _sealer = None


def are_sealed() -> bool:
    """Whether what is packed now is encrypted."""
    return _sealer is not None


def is_current(stored: bytes) -> bool:
    """Whether it was sealed with the key that writes now."""
    return _sealer is not None and stored.startswith(SEALED + _sealer.head)


def pack(data: bytes) -> bytes:
    """`data` as it is stored."""
    packed = _packed(data)
    return packed if _sealer is None else SEALED + _sealer.seal(packed)


def unpack(stored: bytes) -> bytes:
    """What `pack` was given. Raises errors.Internal when codec or key is unknown, or the data is damaged."""
    if stored[:1] == SEALED:
        if _sealer is None:
            raise errors.Internal("A stored body is encrypted, and COMPACTD_BODY_KEYS is not set.")
        stored = _sealer.open(memoryview(stored)[1:])
    codec = stored[:1]
    if codec == RAW:
        return stored[1:]
    if codec != ZSTD:
        raise errors.Internal("A stored body has a codec that this version does not know.")
    try:
        return _codec.decompress(memoryview(stored)[1:])
    except zstandard.ZstdError:
        raise errors.Internal("A stored body is damaged.") from None


def unpack_object(stored: bytes) -> bytes:
    """The same for a column that held bare JSON objects before its bodies were packed."""
    return stored if stored[:1] == b"{" else unpack(stored)


def _packed(data: bytes) -> bytes:
    if len(data) < MIN_COMPRESSED_BYTES:
        return RAW + data
    frame = _codec.compress(data)
    return ZSTD + frame if len(frame) < len(data) else RAW + data
