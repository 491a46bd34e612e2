"""Encryption of what is stored: AES-256-GCM under one of several keys, whose id stands in front of the data.

A sealed body is the length of the key's id (one byte), the id, twelve random bytes, and the data with its tag; id and
length are authenticated with it. Random nonces are safe for 2^32 bodies under one key (NIST SP 800-38D): put a new key
in front long before.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from compaction import errors
from compaction.core.body_keys import BodyKey

NONCE_BYTES = 12  # 96 bits, as GCM wants it
_NO_KEY = "A stored body is encrypted with a key that is not among COMPACTD_BODY_KEYS. Put that key back to read it."
_DAMAGED = "A stored body cannot be decrypted: it is damaged, or its key has another value now."


class Sealer:
    """Seals with the first of `keys` and opens with all; safe to use from many threads at once."""

    def __init__(self, keys: Sequence[BodyKey]) -> None:
        self._ciphers = {key.id.encode("ascii"): AESGCM(key.secret) for key in keys}
        identifier = keys[0].id.encode("ascii")
        self.head = bytes([len(identifier)]) + identifier
        self._writing = self._ciphers[identifier]

    def seal(self, data: bytes) -> bytes:
        """`data` as nobody without the keys can read it."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return self.head + nonce + self._writing.encrypt(nonce, data, self.head)

    def open(self, sealed: memoryview) -> bytes:
        """What `seal` was given. Raises errors.Internal for an unknown key and for damaged data."""
        size = 1 + (sealed[0] if sealed else 0)
        head = bytes(sealed[:size])
        cipher = self._ciphers.get(head[1:])
        if cipher is None:
            raise errors.Internal(_NO_KEY)
        nonce, data = sealed[size : size + NONCE_BYTES], sealed[size + NONCE_BYTES :]
        try:
            return cipher.decrypt(bytes(nonce), bytes(data), head)
        except (InvalidTag, ValueError):
            raise errors.Internal(_DAMAGED) from None
