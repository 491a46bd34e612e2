"""Taking a result over: the producer tells what it is about to replace, and gets what came in meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.schemas.fields import Answer, Request
from api.schemas.messages import Envelope
from api.schemas.problems import Problem
from api.schemas.results import ApiMessage

MAX_HASHES = 200_000  # a hundred times the longest real session log

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 in lower-case hex")]

_HASHES = [
    "35fcb03ce386fe31f5464a5a9010d1a2ec9eb8201827aae04353ee0d70aa8de0",
    "c228956305fc8c3ba5a8401b8fa386996741d5ed36e71d1e01b1a0196c30b24a",
]
APPLY: dict[str, Any] = {"prefix_hash": _HASHES[1], "hashes": _HASHES}
_APPLIED: dict[str, Any] = {
    "job_id": "01a22e26-5941-7380-aaa5-3156a0f6644b",
    "session_id": "agent-7:2026-11-30",
    "applied_at": "2026-11-30T20:31:02.113000Z",
    "covers_through_seq": 277,
    "head_seq": 278,
    "messages": [{"uuid": "m278", "role": "user", "content": "Also bump the version."}],
    "api_messages": [
        {"role": "user", "content": "This session continues an earlier one. Summary: …\n\nAlso bump the version."},
    ],
}


class ApplyRequest(Request):
    """What the producer is about to replace: the hash of its messages, and all the hashes to be told what differs."""

    prefix_hash: Hash = Field(description="hₙ over the messages that the result replaces; docs/api.md has the recipe")
    hashes: list[Hash] | None = Field(
        default=None, max_length=MAX_HASHES, description="h₁ … hₙ: a refusal then tells the first index that differs"
    )


class Applied(Answer):
    """The result is taken over: go on with `api_messages`."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_APPLIED]})

    job_id: str
    session_id: str
    applied_at: datetime = Field(description="When it was first taken over; asking again changes nothing")
    covers_through_seq: int
    head_seq: int = Field(description="The newest message in this answer")
    messages: list[Envelope] = Field(description="The tail: what was appended after covers_through_seq, as stored")
    api_messages: list[ApiMessage] = Field(description="The result and the tail in one list, ready to send")


class StaleProblem(Problem):
    """The producer's history is not what the result replaces. Nothing was changed."""

    covers_through_seq: int | None = Field(default=None, description="The newest message that the result replaces")
    length: int | None = Field(default=None, description="How many messages the prefix hash goes over")
    first_differing_index: int | None = Field(
        default=None, description="Counted from 0, when `hashes` were sent; `length`: the list sent is only longer"
    )
