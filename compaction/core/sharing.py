"""Whether a summary may ride on the main conversation's prompt cache: warm, able, and worth its price.

A request that repeats the session's prefix byte for byte reads it from the cache at a tenth of the price or less
(facts/anthropic.md §6). The cache lives from the start of the request that wrote or read it; queue latency decides, so
this is asked when a job starts, not when it is enqueued. When it is cold, a fresh request is cheaper and simpler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from compaction.core.ages import last_answer_at, moment
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage
from compaction.core.open_round import open_round
from compaction.core.results import SessionFacts
from compaction.ports import Price

MARGIN = timedelta(seconds=15)  # between our look at the clock and the API's: claim, load, connect, upload
TTLS: dict[str, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}  # facts §3d
UNCACHED_TOKENS = 4_500  # tail and prompt of a shared request, facts §6 (cost table)
SUMMARY_TOKENS = 6_000  # a summary with its analysis, facts §6 (cost table)

Reason = Literal["off", "cold", "open_call", "forced_tool", "no_room", "too_small", "price", "shared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What the decision looks at beside session and messages. Tokens are those of the whole next request."""

    now: datetime
    tokens: int
    room_tokens: int  # what the session's model takes beside the summary
    min_cacheable_tokens: int
    max_output_tokens: int
    fresh_model: str  # who would write a fresh summary
    enabled: bool = True  # the operator's switch


def decide(facts: SessionFacts, messages: Sequence[Message], sharing: Sharing, price: Price) -> Reason:
    """`shared` when a shared request is possible and no dearer than a fresh one, else why not."""
    obstacle = _obstacle(facts, messages, sharing)
    if obstacle is not None:
        return obstacle
    return "shared" if _pays(facts.model, sharing, price) else "price"


def _obstacle(facts: SessionFacts, messages: Sequence[Message], sharing: Sharing) -> Reason | None:
    request = facts.request if isinstance(facts.request, dict) else {}
    if not sharing.enabled or facts.settings.get("shared_prefix") is False:
        return "off"
    if not is_warm(request, messages, sharing.now):
        return "cold"
    if open_round(messages):
        return "open_call"
    if not _may_answer(request.get("tool_choice")):
        return "forced_tool"
    if sharing.tokens + UNCACHED_TOKENS > sharing.room_tokens or not _can_think(request, sharing.max_output_tokens):
        return "no_room"
    return "too_small" if sharing.tokens < sharing.min_cacheable_tokens else None


def is_warm(request: dict[str, Json], messages: Sequence[Message], now: datetime) -> bool:
    """Whether the main conversation's cache still lives: by the start of its last request, else by its last answer."""
    started = moment(request.get("last_request_started_at")) or last_answer_at(messages)
    ttl = TTLS.get(str(request.get("cache_ttl")), TTLS["5m"])
    return started is not None and now - started < ttl - MARGIN


def _may_answer(choice: Json) -> bool:
    return choice is None or (isinstance(choice, dict) and choice.get("type") in {"auto", "none"})


def _can_think(request: dict[str, Json], max_output_tokens: int) -> bool:
    """Whether thinking leaves room for the summary within the output limit."""
    thinking = request.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return not isinstance(budget, int) or budget + SUMMARY_TOKENS <= max_output_tokens


def _pays(model: str, sharing: Sharing, price: Price) -> bool:
    """Compares a cache hit on the session's model with a fresh summary by the other model; a tie goes to the hit."""
    hit = Usage(input_tokens=UNCACHED_TOKENS, cache_read_input_tokens=sharing.tokens, output_tokens=SUMMARY_TOKENS)
    shared = price(model, hit)
    fresh = price(sharing.fresh_model, Usage(input_tokens=sharing.tokens, output_tokens=SUMMARY_TOKENS))
    if shared is None or fresh is None:
        return model == sharing.fresh_model
    return shared <= fresh
