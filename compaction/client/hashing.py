"""The hashes that name a list of messages: the recipe of docs/api.md, done by the same code as at the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from compaction.core import wire
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message

NOTHING = sha256(b"").hexdigest()  # stands for no messages where a hash is asked for; no list has it


def prefix_hashes(messages: Sequence[Mapping[str, Json]]) -> list[str]:
    """h₁ … hₙ of messages {role, content, …}: only user and assistant messages count, and only role and content."""
    return wire.prefix_hashes([_message(value) for value in messages])


def _message(value: Mapping[str, Json]) -> Message:
    return Message(
        role=value["role"],
        content=value["content"],
        is_sidechain=bool(value.get("is_sidechain")),
        partial=bool(value.get("partial")),
    )
