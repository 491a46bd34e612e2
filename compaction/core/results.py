"""What a compaction gives back, and the plain facts of the job it ran for."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from compaction.core.boundary import Boundary
from compaction.core.jobs import Scope, Trigger
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage


@dataclass(frozen=True, slots=True)
class Dropped:
    """What had to be left out so that the request fitted: it stands in no summary."""

    rounds: int = 0
    messages: int = 0
    tokens: int = 0

    def plus(self, other: Dropped) -> Dropped:
        """The sum over two cuts."""
        return Dropped(self.rounds + other.rounds, self.messages + other.messages, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls cost: tokens, and dollars where each call's price is known."""

    usage: Usage = field(default_factory=Usage)
    dollars: Decimal | None = field(default_factory=Decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for: one job's parameters."""

    job_id: str
    trigger: Trigger
    scope: Scope = field(default_factory=Scope)
    instructions: str | None = None
    strategy: str | None = None  # None: the ladder decides
    fallback: str | None = None  # "extractive": the last resort when the model gives no summary
    force: bool = False
    token_gap: int | None = None  # reactive: by how much the producer's own call was too long


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What the stored session says beside its messages. JSON values stand as the producer sent them."""

    session_id: str
    tenant: str
    model: str
    system: Json = None
    tools: Json = None
    request: Json = None
    settings: dict[str, Json] = field(default_factory=dict)
    query_source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """A finished compaction; `messages` are [boundary, *summary, *kept, *attachments, *hook messages]."""

    job_id: str
    strategy: str
    boundary: Boundary
    summary: tuple[Message, ...] = ()
    kept: tuple[Message, ...] = ()
    attachments: tuple[Message, ...] = ()
    hook_messages: tuple[Message, ...] = ()
    pre_tokens: int
    post_tokens: int
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None = None  # None: the model's price is unknown, or nothing was paid
    model: str | None = None
    ptl_attempts: int = 0
    dropped: Dropped = field(default_factory=Dropped)
    context_management: Json = None
    cleared_ids: tuple[str, ...] = ()  # calls whose results micro-compaction cleared; remembered with the session
    covers_through_seq: int
    prefix_hash: str
    degraded: bool = False
    hook_results: tuple[dict[str, Json], ...] = ()
    under_threshold: bool = True

    @property
    def messages(self) -> tuple[Message, ...]:
        """The compacted conversation in its one order."""
        return (self.boundary.message(), *self.summary, *self.kept, *self.attachments, *self.hook_messages)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The job is done and nothing was compacted; `reason` is one of the skip reasons of DESIGN §5."""

    reason: str


Outcome = CompactionResult | Skipped
