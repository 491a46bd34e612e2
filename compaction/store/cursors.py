"""Cursors of lists: opaque to callers, a position in an index to us."""

from __future__ import annotations

import base64
import binascii
import uuid

from compaction import errors


def encode_number(number: int) -> str:
    """A cursor behind the row with this id."""
    return _encode(number.to_bytes(8, "big"))


def decode_number(cursor: str | None) -> int | None:
    """The id that the cursor stands for; None without one. Raises errors.InvalidRequest for a made-up one."""
    data = _decode(cursor, 8)
    return None if data is None else int.from_bytes(data, "big")


def encode_uuid(identifier: str) -> str:
    """A cursor behind the row with this UUID."""
    return _encode(uuid.UUID(identifier).bytes)


def decode_uuid(cursor: str | None) -> str | None:
    """The UUID that the cursor stands for; None without one. Raises errors.InvalidRequest for a made-up one."""
    data = _decode(cursor, 16)
    return None if data is None else str(uuid.UUID(bytes=data))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode(cursor: str | None, size: int) -> bytes | None:
    if cursor is None:
        return None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != size or data[:1] >= b"\x80":
        raise errors.InvalidRequest("The cursor is not one of ours.", fields=(("cursor", "is not one of ours"),))
    return data
