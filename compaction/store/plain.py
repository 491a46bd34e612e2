"""What text and jsonb columns can carry: no NUL character, no lone surrogate. Bodies (`store.bodies`) have no limit."""

from __future__ import annotations

import re

from compaction import errors
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

MAX_NUMBER = 2**63 - 1  # the largest bigint
MAX_JSON_BYTES = 1_000_000  # one event, error, metadata or settings object; anything larger is a body in disguise
_UNCARRIED = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_OMITTED = '{"omitted":true}'
_JOB_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def text(field: str, value: str) -> str:
    """`value` itself. Raises errors.InvalidRequest naming `field` when Postgres's text cannot carry it."""
    if _UNCARRIED.search(value):
        raise _refused(field, "must have no NUL characters and no halves of surrogate pairs")
    return value


def optional_text(field: str, value: str | None) -> str | None:
    """The same for a value that may be missing."""
    return value if value is None else text(field, value)


def optional_number(field: str, value: int | None) -> int | None:
    """`value` itself. Raises errors.InvalidRequest naming `field` when a bigint cannot carry it."""
    if value is not None and abs(value) > MAX_NUMBER:
        raise _refused(field, "is too large a number")
    return value


def json_text(field: str, value: Json) -> str:
    """`value` as JSON text for jsonb. Raises errors.InvalidRequest naming `field` when jsonb cannot carry it."""
    encoded = _encoded(value)
    if encoded is None:
        raise _refused(field, f"must be JSON of at most {MAX_JSON_BYTES} bytes and not nested too deep")
    if "\\u" in encoded and not _carried(value):
        raise _refused(field, "must have no NUL characters and no halves of surrogate pairs")
    return encoded


def mended_json_text(value: Json) -> str:
    """`value` as JSON text for jsonb, with the replacement character where jsonb cannot carry one: for our own records.

    What is too large or too deep to keep becomes {"omitted": true}: a record must never cost a commit.
    """
    encoded = _encoded(value)
    if encoded is not None and "\\u" in encoded and not _carried(value):
        encoded = _encoded(_mended(value))
    return _OMITTED if encoded is None else encoded


def job_id(value: str) -> str | None:
    """`value` if it can be a job's id, None if no job can have it."""
    return value.lower() if _JOB_ID.fullmatch(value) else None


def _refused(field: str, problem: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"{field} {problem}.", fields=((field, problem),))


def _encoded(value: Json) -> str | None:
    try:
        encoded = jsonbytes.encode(value).decode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return None
    return None if len(encoded) > MAX_JSON_BYTES else encoded


def _carried(value: Json) -> bool:
    if isinstance(value, str):
        return _UNCARRIED.search(value) is None
    if isinstance(value, dict):
        return all(_carried(key) and _carried(item) for key, item in value.items())
    return all(map(_carried, value)) if isinstance(value, list | tuple) else True


def _mended(value: Json) -> Json:
    if isinstance(value, str):
        return _UNCARRIED.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list | tuple) else value
