"""One attempt at one job as values and ports: what the pipeline is given, and what it knows of the live view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from compaction.core import partial, pinned, session_memory, summary, tokens, tool_table, wire
from compaction.core.boundary import boundary_of
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, conversation
from compaction.core.partial import Carried
from compaction.core.results import Order, SessionFacts, Spent
from compaction.core.session_state import SessionState
from compaction.core.thresholds import Thresholds
from compaction.core.tool_table import ToolTable
from compaction.ports import History, Hooks, PaidSummary, Price, Recorder, Summarizer


@dataclass(frozen=True, kw_only=True)
class Task:
    """What was asked, of which snapshot, under which limits, and what an earlier attempt paid for.

    `window_tokens` and `max_output_tokens` are those of the model that writes the summary; `session_window_tokens` is
    that of the session's own model, `room_tokens` what it takes beside a summary. `now` is the database's clock when
    the attempt began.
    """

    facts: SessionFacts
    order: Order
    covers_through_seq: int
    now: datetime
    thresholds: Thresholds
    model: str  # who writes a fresh summary
    window_tokens: int
    max_output_tokens: int
    session_window_tokens: int
    room_tokens: int
    min_cacheable_tokens: int
    limit_bytes: int  # of one request to the provider
    state: SessionState = field(default_factory=SessionState)
    has_runtime_state: bool = False  # the session stores run-time state that a compaction must forget
    cleared_ids: frozenset[str] = frozenset()  # calls whose results an edit of the API cleared before
    micro_threshold_ms: int = 300_000  # DESIGN §3: five minutes
    shares_prefix: bool = True  # the operator's switch
    fallback_model: str | None = None  # asked once when the model refuses
    attempt: int = 1
    is_last_attempt: bool = False
    paid: PaidSummary | None = None
    spent: Spent = field(default_factory=Spent)  # on calls of earlier attempts

    @cached_property
    def table(self) -> ToolTable:
        """Which tools' results may be cleared in this session."""
        return tool_table.tool_table(self.facts.settings)

    @property
    def refused_tokens(self) -> int | None:
        """What the provider counted when it refused the producer's own call by `token_gap`; None when nobody says."""
        gap = self.order.token_gap
        return self.session_window_tokens + gap if gap else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world of one attempt. `extractive` needs no model; `last_resort` says that it may step in for one."""

    history: History
    summarizer: Summarizer
    extractive: Summarizer
    recorder: Recorder
    hooks: Hooks
    price: Price
    last_resort: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The numbers of a live view for one scope, taken before a call so that the messages need not be held during it."""

    pre_tokens: int
    replaced_tokens: int  # by the estimator that judges what replaces them
    overhead_tokens: int  # system prompt and tools, which no compaction can shrink
    ratio: float  # real tokens per estimated one, learned from the session's usage
    kept: Carried
    prior_summary: str | None
    pinned_before: tuple[str, ...]  # standing constraints that the last compaction carried on
    pinned: tuple[str, ...]  # and those that the replaced messages add
    prefix_hash: str
    refused_ratio: float | None  # the same, from the refusal that the producer met; None when it did not say
    chain: int  # how many compactions there were before
    turns: int  # answers of the model since the last one


def survey(task: Task, messages: Sequence[Message]) -> Survey:
    """The numbers of a loaded live view. Raises InvalidSession when the scope names no message of it."""
    facts = task.facts
    counted = tokens.session_tokens(messages, system=facts.system, tools=facts.tools)
    parts = partial.split(messages, task.order.scope)
    before = pinned_before(messages)
    return Survey(
        pre_tokens=counted.tokens,
        replaced_tokens=tokens.estimate_messages(parts.replaced),
        overhead_tokens=tokens.estimate_overhead(facts.system, facts.tools),
        ratio=counted.ratio,
        refused_ratio=_refused_ratio(task, messages),
        kept=partial.carried(parts),
        prior_summary=prior_summary(parts.replaced),
        pinned_before=before,
        pinned=pinned.constraints(parts.replaced, before),
        prefix_hash=wire.prefix_hash(conversation(messages)),
        chain=_chain(messages),
        turns=len({answer_of(message) for message in messages if message.role == "assistant"}),
    )


def memory_survey(view: Survey, memory: session_memory.MemoryCompaction) -> Survey:
    """The numbers when the session's own memory stands for what it replaces."""
    replaced_tokens = tokens.estimate_messages(memory.replaced)
    return replace(view, replaced_tokens=replaced_tokens, kept=Carried(memory.kept))


def pinned_before(messages: Sequence[Message]) -> tuple[str, ...]:
    """The standing constraints on the boundary that the live view begins with."""
    marker = boundary_of(messages)
    listed = marker.get("pinned") if marker is not None else None
    return tuple(text for text in listed if isinstance(text, str)) if isinstance(listed, list) else ()


def prior_summary(messages: Sequence[Message]) -> str | None:
    """The text of the earlier summary among the messages, None when there is none."""
    for message in messages:
        if message.is_compact_summary:
            return summary.extract_summary_text(message)
    return None


def answer_of(message: Message) -> str | int:
    """What tells one answer of the model from another: the API's id, else the message itself."""
    return message.api_message_id or id(message)


def _refused_ratio(task: Task, messages: Sequence[Message]) -> float | None:
    """Real tokens per estimated one of the whole session, as the refusal of the producer's own call proves them."""
    if task.refused_tokens is None:
        return None
    facts = task.facts
    whole = tokens.estimate_overhead(facts.system, facts.tools) + tokens.estimate_messages(conversation(messages))
    return task.refused_tokens / max(1, whole)


def _chain(messages: Sequence[Message]) -> int:
    marker = boundary_of(messages)
    count = 0 if marker is None else marker.get("chain", 1)
    return count if isinstance(count, int) and count > 0 else 0


def text_of(value: Json) -> str | None:
    """A setting that is text, None for anything else."""
    return value if isinstance(value, str) else None
