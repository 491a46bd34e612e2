"""The boundary: the marker message where a compaction happened, first in every result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.core.jsonbytes import Json
from compaction.core.messages import BOUNDARY_KIND, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class PreservedSegment:
    """The messages that a compaction kept, by uuid: first, last, and the message they hang on afterwards.

    A loader that rebuilds the chain by parent uuids sets the parent of `head_uuid` to `anchor_uuid`.
    """

    head_uuid: str | None
    tail_uuid: str | None
    anchor_uuid: str | None
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What the marker says. Tokens are our estimate of the live view before the compaction."""

    uuid: str
    trigger: str
    strategy: str
    pre_tokens: int
    covers_through_seq: int
    job_id: str
    scope: str = "full"
    chain: int = 1  # the how manieth compaction of the session
    preserved: PreservedSegment | None = None
    estimated_tokens: int | None = None  # of the same view by the estimator of post_tokens, where pre_tokens is counted
    pinned: tuple[str, ...] = ()  # standing constraints of the user, word for word

    def message(self) -> Message:
        """The marker as a stored message: role system, no text, everything in its metadata."""
        return Message(role="system", content="", uuid=self.uuid, metadata=self.metadata())

    def metadata(self) -> dict[str, Json]:
        """The marker's metadata, kind included."""
        fields: dict[str, Json] = {
            "kind": BOUNDARY_KIND,
            "trigger": self.trigger,
            "strategy": self.strategy,
            "pre_tokens": self.pre_tokens,
            "covers_through_seq": self.covers_through_seq,
            "job_id": self.job_id,
        }
        if self.estimated_tokens is not None:
            fields["estimated_tokens"] = self.estimated_tokens
        if self.chain > 1:
            fields["chain"] = self.chain
        if self.scope != "full":
            fields["scope"] = self.scope
        if self.pinned:
            fields["pinned"] = list(self.pinned)
        if self.preserved is not None:
            fields["preserved_segment"] = {
                "head_uuid": self.preserved.head_uuid,
                "tail_uuid": self.preserved.tail_uuid,
                "anchor_uuid": self.preserved.anchor_uuid,
                "messages": self.preserved.messages,
            }
        return fields


def boundary_of(messages: Sequence[Message]) -> Mapping[str, Json] | None:
    """The metadata of the boundary that a live view begins with, None when it begins with none."""
    return next((message.metadata for message in messages if message.is_boundary), None)


def live(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages from the last boundary on (a summary without a marker counts as one); all when there is none.

    Summaries among the messages that the boundary's compaction kept begin nothing: they stand in its preserved segment.
    """
    start = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].is_boundary), -1)
    own = start + 1 + _preserved(messages[start]) if start >= 0 else -1  # the last that the boundary's result brought
    for place in range(len(messages) - 1, own, -1):
        if messages[place].is_compact_summary:
            return tuple(messages[place:])
    return tuple(messages[max(start, 0) :])


def _preserved(marker: Message) -> int:
    """How many messages the compaction at this boundary kept."""
    segment = (marker.metadata or {}).get("preserved_segment")
    count = segment.get("messages") if isinstance(segment, dict) else 0
    return count if isinstance(count, int) and count > 0 else 0
