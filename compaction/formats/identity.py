"""Names for what a file leaves nameless: the same bytes get the same name on every import."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

MAX_SESSION_ID_CHARS = 200  # DESIGN §8
DIGEST_CHARS = 40  # 160 bits of SHA-256, as long as a git commit's name: never equal by chance
_SESSION_ID = re.compile(rf"[A-Za-z0-9._:-]{{1,{MAX_SESSION_ID_CHARS}}}")


class DerivedUuids:
    """uuids for rows that have none: of a row's bytes, and of how many equal rows stood before it in the file.

    So a file that has grown gives its old rows the same uuids, and two equal messages stay two.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def next(self, data: bytes) -> str:
        """The uuid of the next row with these bytes."""
        digest = hashlib.sha256(data).digest()
        self._seen[digest] += 1
        return "row-" + short_digest([digest, b"%d" % self._seen[digest]])


def short_digest(parts: Iterable[bytes]) -> str:
    """A digest of `parts` that fits into an id."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()[:DIGEST_CHARS]


def is_session_id(value: object) -> bool:
    """Whether `value` is a session id as DESIGN §8 takes it."""
    return isinstance(value, str) and _SESSION_ID.fullmatch(value) is not None
