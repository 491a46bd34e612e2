"""A text column that is encrypted when bodies are: what a person wrote, in a column that no query looks into."""

from __future__ import annotations

import base64
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

from compaction import errors
from compaction.store import bodies

MARK = "sealed:"  # base64 of a packed body follows; a plain text that begins so is stored like that too


class Unreadable(str):
    """Stands for a text whose key is missing, so that the rows around it can be shown; it is never stored."""

    __slots__ = ()


UNREADABLE = Unreadable("(encrypted with a key that is not among COMPACTD_BODY_KEYS)")


def readable(value: str | None) -> str | None:
    """`value`, for whoever acts by it. Raises errors.Internal when it cannot be read."""
    if isinstance(value, Unreadable):
        raise errors.Internal("A stored text is encrypted with a key that is not among COMPACTD_BODY_KEYS.")
    return value


class SealedText(TypeDecorator[str]):
    """Text as it is while no keys are set, and else a body in base64 behind a mark; either is read at any time."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """What is stored."""
        del dialect
        value = readable(value)
        if value is None or not (bodies.are_sealed() or value.startswith(MARK)):
            return value
        return _sealed(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ANN401 - SQLAlchemy's signature
        """What was given, or UNREADABLE: one row without its key must not hide a list of others."""
        del dialect
        try:
            return None if value is None else _opened(str(value))
        except errors.Internal:
            return UNREADABLE


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
