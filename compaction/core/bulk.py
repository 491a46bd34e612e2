"""Bulk runs: their states, which sessions are theirs, and what may still be spent.

    planning ──▶ running ──▶ ended            dry run: planning ──▶ ready ──resume──▶ running
                  │   ▲
      sample done ▼   │ resume                any but ended ──pause──▶ paused ──resume──▶ where it was
                 sampled                      any but ended ──cancel──▶ cancelling ──▶ ended

An item is one session of a run: found → queued (live) or batched → queued (Message Batches) → succeeded, failed,
cancelled or expired; or skipped, with the reason. Content hash and recipe together are what is paid for once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

RunState = Literal["planning", "ready", "running", "sampled", "paused", "cancelling", "ended"]
ItemState = Literal["found", "skipped", "batched", "queued", "succeeded", "failed", "cancelled", "expired"]
Way = Literal["live", "message_batches"]
EndReason = Literal["done", "cancelled", "max_usd", "max_tokens"]
ItemSkip = Literal[
    "circuit_open",
    "recursion_guard",
    "nothing_to_compact",
    "invalid_session",
    "unchanged",
    "failed_before",
    "no_price",
    "max_usd",
    "max_tokens",
]

RUN_STATES: tuple[RunState, ...] = get_args(RunState)
ITEM_STATES: tuple[ItemState, ...] = get_args(ItemState)
UNDER_WAY: tuple[ItemState, ...] = ("batched", "queued")
OPEN: tuple[ItemState, ...] = ("found", *UNDER_WAY)
AT_WORK: tuple[RunState, ...] = ("planning", "running", "cancelling")  # the others wait for somebody's word
PAUSABLE: tuple[RunState, ...] = ("planning", "running")
RESUMABLE: tuple[RunState, ...] = ("ready", "sampled", "paused")

MAX_SESSION_IDS = 20_000  # of one order: twice the largest archive that is planned in a minute; a megabyte of ids
PROMPT_TOKENS = 4_500  # facts/anthropic.md §6: what our prompt adds to a transcript
SUMMARY_TOKENS = 6_000  # facts/anthropic.md §6: a usual summary
MAX_MISSES = (
    3  # an item fails so often by what passes (worker lost, expired, overloaded); then it is itself the trouble
)

# Asking again with the same content and recipe would meet the same end and cost the same money.
FINAL_FAILURES = frozenset(
    {"not_effective", "no_summary", "prompt_too_long", "refusal", "request_too_large", "summary_truncated"}
)

REQUEST_COUNTS: dict[str, tuple[ItemState, ...]] = {  # as the Message Batches API names them
    "processing": OPEN,
    "succeeded": ("succeeded",),
    "errored": ("failed",),
    "canceled": ("cancelled",),
    "expired": ("expired",),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which stored sessions a run takes; what is None asks for nothing. Ages are days since the session changed."""

    session_ids: tuple[str, ...] | None = None
    id_prefix: str | None = None
    idle_days: float | None = None  # unchanged for at least so long
    changed_within_days: float | None = None
    model: str | None = None
    min_tokens: int | None = None
    last_strategy: str | None = None  # of the result that the live view begins with
    prompt_version_below: int | None = None  # of that result; sessions that were never compacted count as older
    breaker: Literal["open", "closed"] | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend, None for no limit."""

    max_usd: Decimal | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Tokens and dollars, of one item by estimate or of all that was spent."""

    tokens: int = 0
    usd: Decimal = Decimal(0)

    def plus(self, other: Load) -> Load:
        """The sum of both."""
        return Load(self.tokens + other.tokens, self.usd + other.usd)


def recipe(*, prompt_version: int, summarizer: str, strategy: str | None, model: str, instructions: str | None) -> str:
    """What decides a summary beside the messages, as a short hash."""
    parts = (str(prompt_version), summarizer, strategy or "", model, instructions or "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def custom_id(item_id: int) -> str:
    """The name of an item in results and in batches: `^[a-zA-Z0-9_-]{1,64}$`, as the Message Batches API wants it."""
    return f"item-{item_id}"


def expected_load(tokens: int, usd: Decimal | None) -> Load:
    """What an item will probably use: its session, our prompt and a usual summary."""
    return Load(tokens + PROMPT_TOKENS + SUMMARY_TOKENS, usd or Decimal(0))


def exceeded(budget: Budget, spent: Load) -> EndReason | None:
    """Which limit `spent` is over, None while it is within all."""
    if budget.max_usd is not None and spent.usd > budget.max_usd:
        return "max_usd"
    if budget.max_tokens is not None and spent.tokens > budget.max_tokens:
        return "max_tokens"
    return None


def affordable(budget: Budget, spent: Load, items: Iterable[Load]) -> tuple[int, EndReason | None]:
    """How many of `items`, from the first on, fit beside what is spent or reserved; and which limit stops the next."""
    count = 0
    for load in items:
        spent = spent.plus(load)
        if (limit := exceeded(budget, spent)) is not None:
            return count, limit
        count += 1
    return count, None


def request_counts(states: dict[str, int]) -> dict[str, int]:
    """The items by the names of the Message Batches API; skipped ones were never requested."""
    return {name: sum(states.get(state, 0) for state in of) for name, of in REQUEST_COUNTS.items()}
