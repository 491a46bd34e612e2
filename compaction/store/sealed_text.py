"""A text column that is encrypted when bodies are: what a person wrote, in a column that no query looks into."""

from __future__ import annotations

import base64
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

from compaction.store import bodies

MARK = "sealed:"  # base64 of a packed body follows; a plain text that begins so is stored like that too


class SealedText(TypeDecorator[str]):
    """Text as it is while no keys are set, and else a body in base64 behind a mark; either is read at any time."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """What is stored."""
        del dialect
        if value is None or not (bodies.are_sealed() or value.startswith(MARK)):
            return value
        return _sealed(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ANN401 - SQLAlchemy's signature
        """What was given."""
        del dialect
        return None if value is None else _opened(str(value))


def again(stored: str) -> str | None:
    """A stored text under the key that writes now; None when it is already."""
    if stored.startswith(MARK) and bodies.is_current(_packed(stored)):
        return None
    return _sealed(_opened(stored))


def _sealed(text: str) -> str:
    return MARK + base64.b64encode(bodies.pack(text.encode("utf-8"))).decode("ascii")


def _opened(stored: str) -> str:
    return bodies.unpack(_packed(stored)).decode("utf-8") if stored.startswith(MARK) else stored


def _packed(stored: str) -> bytes:
    return base64.b64decode(stored.removeprefix(MARK))
