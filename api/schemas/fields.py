"""Field types that several requests share, with the limits that Postgres and the log readers need."""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from compaction.core.jsonbytes import has_lone_surrogate

SESSION_ID = r"^[A-Za-z0-9._:\-]{1,200}$"  # DESIGN §8
MAX_INSTRUCTIONS_CHARS = 20_000  # about 5,000 tokens: more than any prompt of ours, far less than a transcript
MAX_METADATA_BYTES = 16 * 1024  # like other job services; it is echoed in every list
MAX_METADATA_DEPTH = 32
MAX_PAGE = 200  # rows in one page of a list
MAX_SEQ = 2**63 - 1  # bigint

_SESSION_ID = re.compile(SESSION_ID.removesuffix("$") + r"\Z")


class Request(BaseModel):
    """A request body: no silent conversions, and an unknown field is refused by its name."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True, frozen=True)


class Query(BaseModel):
    """The parameters behind the `?` of an address; an unknown one is refused by its name."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)


class Answer(BaseModel):
    """An answer's body."""

    model_config = ConfigDict(frozen=True)


def storable_text(text: str) -> str:
    """`text`, if Postgres can keep it. Raises ValueError."""
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    if has_lone_surrogate(text):
        raise ValueError("must not hold half a character (a lone surrogate)")
    return text


def storable_object(value: dict[str, Any]) -> dict[str, Any]:
    """`value`, if it is small, plain JSON that Postgres can keep and query. Raises ValueError."""
    _check_plain(value)
    if len(json.dumps(value, ensure_ascii=False).encode("utf-8")) > MAX_METADATA_BYTES:
        raise ValueError(f"must not be larger than {MAX_METADATA_BYTES} bytes of JSON")
    return value


def _check_plain(value: object) -> None:
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_METADATA_DEPTH:
            raise ValueError(f"must not be nested deeper than {MAX_METADATA_DEPTH} levels")
        if isinstance(item, str):
            storable_text(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("must not hold NaN or infinite numbers")
        elif isinstance(item, dict):
            waiting += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]


def session_id(text: str) -> str:
    """`text`, if it may name a session. Raises ValueError."""
    if not _SESSION_ID.match(text):
        raise ValueError("must be 1 to 200 characters of A-Z a-z 0-9 . _ : -")
    return text


SessionId = Annotated[str, AfterValidator(session_id), Field(examples=["agent-7:2026-11-30"])]
SessionPath = Annotated[
    str, Path(description="The producer's name for the session: 1 to 200 of A-Z a-z 0-9 . _ : -", pattern=SESSION_ID)
]
JobPath = Annotated[str, Path(description="The job's id, as the 202 gave it", max_length=100)]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="Rows in this page")]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the page before", max_length=500)]
Text = Annotated[str, AfterValidator(storable_text)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(storable_text)]
Instructions = Annotated[str, StringConstraints(max_length=MAX_INSTRUCTIONS_CHARS), AfterValidator(storable_text)]
Metadata = Annotated[dict[str, Any], AfterValidator(storable_object)]


def _written(value: object) -> object:
    if isinstance(value, str) and "T" not in value.upper():
        raise ValueError("must be a time as RFC 3339 writes it: 2026-11-30T08:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]  # in queries, where a bare number would pass for a time


class PageQuery(Query):
    """A page of a list."""

    limit: Limit = 50
    cursor: Cursor = None
