"""What a compaction needs from the world, as small Protocols about meaning. Adapters stand elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message, Usage

RequestKind = Literal["fresh", "shared_prefix"]
Price = Callable[[str, Usage], Decimal | None]  # dollars for a model's usage, None for a model without a known price


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """One call for a summary: what to summarise and under which instructions.

    `messages` is the part of the conversation that the summary replaces, oldest first, as stored (unrepaired; the
    adapter asks `core.wire` for the request body). `system_prompt` and `user_prompt` are the finished prompt texts of
    `core.prompts`; the transcript goes between them (fresh) or before `user_prompt` (shared_prefix).
    `prior_summary` is the text of an earlier summary that stands at the head of `messages` (it is still in `messages`).
    """

    kind: RequestKind
    model: str
    messages: Sequence[Message]
    system_prompt: str
    user_prompt: str
    max_output_tokens: int
    prior_summary: str | None = None
    instructions: str | None = None
    session_system: Json = None  # the session's own system, tools and request: only for shared_prefix
    session_tools: Json = None
    session_request: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryReply:
    """What came back. Text is joined from the text blocks; nothing is judged here (`core.summary` does that)."""

    text: str
    stop_reason: str | None
    usage: Usage
    model: str
    block_types: tuple[str, ...] = ()
    request_id: str | None = None
    degraded: bool = False  # made without a model
    block: Block | None = None  # a server-made compaction block instead of a text; no strategy uses it yet


class Summarizer(Protocol):
    """Makes a summary. Raises errors.ProviderError subclasses; never retries; cancellable at any await."""

    @property
    def name(self) -> str:
        """The name in settings and results: claude or extractive."""
        ...

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The model's answer. `progress.characters(n)` is called as text arrives."""
        ...

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """The provider's own count of the request's input, or None where it cannot tell. Raises like `summarize`."""
        ...

    async def probe(self) -> None:
        """Asks whether the provider can be used now, at no cost. Raises like `summarize` when it cannot."""
        ...


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch: its name (`^[a-zA-Z0-9_-]{1,64}$`, unique in the batch) and its ready JSON."""

    custom_id: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as the provider tells of it; `counts` by the API's names, final only when it has ended."""

    id: str
    has_ended: bool
    created_at: datetime
    counts: Mapping[str, int]

    @property
    def requests(self) -> int:
        """How many requests it holds."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The end of one request: a reply (its document), a refusal (its document), or neither for the other two kinds."""

    custom_id: str
    kind: Literal["succeeded", "errored", "canceled", "expired"]
    document: Json = field(default=None, repr=False)


class MessageBatches(Protocol):
    """Requests that are answered within a day for half the price. Raises errors.ProviderError; never retries."""

    def body_of(self, request: SummaryRequest) -> bytes:
        """The request as it stands in a batch."""
        ...

    async def create(self, requests: Sequence[BatchRequest]) -> BatchState:
        """Sends a batch. After an error that is no refusal nobody knows whether it was taken: look at `newest`."""
        ...

    async def retrieve(self, batch_id: str) -> BatchState:
        """The batch as it stands."""
        ...

    async def newest(self, since: datetime) -> list[BatchState]:
        """The batches that were made since then."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Begins no further request of it."""
        ...

    def answers(self, batch_id: str) -> AsyncIterator[BatchAnswer]:
        """What came of each request of a batch that has ended, in any order."""
        ...


class Progress(Protocol):
    """Hears how far a call has come; must be cheap, it is called for each delta.

    The first news, that 0 characters have arrived, comes when the request has gone out whole.
    """

    def characters(self, count: int) -> None:
        """So many characters of the summary have arrived in all."""
        ...


class History(Protocol):
    """Loads the messages of the snapshot; called again rather than held in memory while a call runs."""

    async def load(self) -> Sequence[Message]:
        """The stored live view through the job's covers_through_seq, oldest first; the same until it is released."""
        ...

    def release(self) -> None:
        """Lets go of what was loaded; the next `load` reads it anew."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidSummary:
    """A summary that was paid for, saved before the next step so that a crash after it does not pay again."""

    text: str  # validated, without analysis and tags
    strategy: str
    model: str
    usage: Usage  # of all calls, failed ones included
    cost_usd: str | None  # decimal dollars of all calls; None when a price is unknown or nothing was paid
    degraded: bool
    ptl_attempts: int = 0
    dropped_rounds: int = 0
    dropped_messages: int = 0
    dropped_tokens: int = 0


class Recorder(Protocol):
    """Where an attempt leaves its trace."""

    def event(self, name: str, fields: dict[str, Json]) -> None:
        """Keeps an event for the job's timeline; written with the commit or with the failure. Never holds content."""
        ...

    def step(self, step: str, percent: int) -> None:
        """Tells pollers how far the job is; the newest one wins."""
        ...

    async def before_call(self) -> None:
        """Durably counts one model call, before it is made. Raises PromptTooLong when the budget of 8 is used up."""
        ...

    async def save_summary(self, summary: PaidSummary) -> None:
        """Stores a paid summary durably, under the lease. Raises errors.LeaseLost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What a hook is told; ids and sizes, no content."""

    tenant: str
    session_id: str
    job_id: str
    trigger: str
    instructions: str | None
    pre_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HookNote:
    """One hook's outcome for the result: its name, whether it worked, how long it took."""

    name: str
    event: str
    ok: bool
    seconds: float
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreCompactAnswer:
    """A hook may add instructions or veto the compaction (the veto's reason reaches the job's error message)."""

    instructions: str | None = None
    veto: str | None = None
    notes: tuple[HookNote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStartAnswer:
    """Messages that hooks want in the compacted conversation, with a note per hook."""

    messages: tuple[Message, ...] = ()
    notes: tuple[HookNote, ...] = field(default_factory=tuple)


class Hooks(Protocol):
    """The producer's hooks around a compaction. A failing hook never loses the job: it becomes a note."""

    async def pre_compact(self, context: HookContext) -> PreCompactAnswer:
        """Asked before the prompt is built."""
        ...

    async def session_start(self, context: HookContext) -> SessionStartAnswer:
        """Asked after the summary was validated."""
        ...
