"""The keys that stored bodies are encrypted with, as an operator writes them: `id:base64,id:base64`.

The first one writes, all of them read: a new key is put in front, and the old ones stay for what they wrote.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

KEY_BYTES = 32  # AES-256
MAX_ID_CHARS = 32
_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_RULE = "must be id:key,id:key with 32 random bytes in base64 for each key, and each id once"


@dataclass(frozen=True, slots=True)
class BodyKey:
    """One key. Its id stands beside what it wrote."""

    id: str
    secret: bytes = field(repr=False)


def parse_body_keys(value: object) -> tuple[BodyKey, ...]:
    """The keys in a setting, the writing one first. Raises ValueError, which quotes nothing."""
    if isinstance(value, tuple):
        return value
    words = [word.strip() for word in str(value).split(",")]
    keys = tuple(_key(word) for word in words if word)
    if len({key.id for key in keys}) != len(keys):
        raise ValueError(_RULE)
    return keys


def _key(word: str) -> BodyKey:
    identifier, _, encoded = word.partition(":")
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not _ID.fullmatch(identifier) or len(secret) != KEY_BYTES:
        raise ValueError(_RULE)
    return BodyKey(identifier, secret)
