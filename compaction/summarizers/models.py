"""What models can take and what they cost: a dated table, used where no Models API and no session setting tells better.

Names reach us with platform prefixes, region prefixes, dates and version suffixes; `canonical` takes them off. A model
that the table does not know gets conservative limits and no price: a wrong window costs one refused request, which the
prompt-too-long loop corrects, while a wrong price would only look like knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from compaction.core.messages import Usage

TABLE_DATE = "2026-11"  # public documentation of August to October 2026 and SDK 2.14.0: facts/anthropic.md §6, §7

Platform = Literal["anthropic", "aws", "google_cloud", "vertex", "bedrock", "foundry"]
Source = Literal["session", "api", "table", "default"]

DEFAULT_WINDOW_TOKENS = 200_000  # the smallest window of a Claude model that is still served
DEFAULT_OUTPUT_TOKENS = 32_000  # a summary (20,000) and one retry with more room; the smallest of Claude 4 (Opus 4)
DEFAULT_CACHEABLE_TOKENS = 4_096  # the largest minimum of any model: below it we promise no cache hit
CACHE_WRITE_FACTORS = {"5m": Decimal("1.25"), "1h": Decimal(2)}  # × input price, every model
BATCH_FACTOR = Decimal("0.5")
_PER_TOKEN = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Tokens that a model takes and gives. `source` tells who said so; of mixed sources, the one of the window."""

    context_window_tokens: int
    max_output_tokens: int
    min_cacheable_tokens: int = DEFAULT_CACHEABLE_TOKENS
    source: Source = "default"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; `cache_read_factor` is × the input price."""

    input: Decimal
    output: Decimal
    cache_read_factor: Decimal


@dataclass(frozen=True, slots=True)
class Tier:
    """A request with a longer prompt than this costs other prices as a whole."""

    above_tokens: int
    price: Price


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """What a platform's Messages API has beside the model call."""

    batches: bool
    models_api: bool
    count_tokens: bool
    max_body_bytes: int


def _limits(window: int, output: int, cacheable: int) -> ModelLimits:
    return ModelLimits(window, output, cacheable, "table")


def _dollars(per_input: str, per_output: str, read: str = "0.1") -> Price:
    return Price(Decimal(per_input), Decimal(per_output), Decimal(read))


_M = 1_000_000
_TABLE: Mapping[str, tuple[ModelLimits, Price]] = {
    # window, output and least cacheable tokens; $ per million tokens in and out, cache reads × input
    "claude-fable-5-1": (_limits(_M, 128_000, 512), _dollars("10", "50", "0.025")),
    "claude-opus-5-5": (_limits(_M, 128_000, 512), _dollars("4", "20", "0.05")),
    "claude-sonnet-5-5": (_limits(_M, 128_000, 512), _dollars("2", "10", "0.05")),
    "claude-haiku-5-5": (_limits(_M, 128_000, 512), _dollars("0.10", "0.50")),
    "claude-opus-5": (_limits(_M, 128_000, 512), _dollars("5", "25")),
    "claude-sonnet-5": (_limits(_M, 128_000, 1_024), _dollars("2", "10")),
    "claude-opus-4-8": (_limits(_M, 128_000, 1_024), _dollars("5", "25")),
    "claude-opus-4-7": (_limits(_M, 128_000, 2_048), _dollars("5", "25")),
    "claude-opus-4-6": (_limits(_M, 128_000, 4_096), _dollars("5", "25")),
    "claude-sonnet-4-6": (_limits(_M, 128_000, 1_024), _dollars("3", "15")),
    "claude-opus-4-5": (_limits(200_000, 64_000, 4_096), _dollars("5", "25")),
    "claude-sonnet-4-5": (_limits(200_000, 64_000, 1_024), _dollars("3", "15")),
    "claude-haiku-4-5": (_limits(200_000, 64_000, 4_096), _dollars("1", "5")),
}
_TIERS: Mapping[str, Tier] = {"claude-haiku-5-5": Tier(100_000, _dollars("0.50", "2.50"))}
_PLATFORMS: Mapping[Platform, PlatformFacts] = {  # facts §2, §4, §5, §8
    "anthropic": PlatformFacts(batches=True, models_api=True, count_tokens=True, max_body_bytes=32 * 1024 * 1024),
    "aws": PlatformFacts(batches=True, models_api=True, count_tokens=True, max_body_bytes=32 * 1024 * 1024),
    "google_cloud": PlatformFacts(batches=False, models_api=False, count_tokens=True, max_body_bytes=30 * 1024 * 1024),
    "vertex": PlatformFacts(batches=False, models_api=False, count_tokens=True, max_body_bytes=30 * 1024 * 1024),
    "bedrock": PlatformFacts(batches=False, models_api=False, count_tokens=False, max_body_bytes=20 * 1024 * 1024),
    "foundry": PlatformFacts(batches=False, models_api=False, count_tokens=True, max_body_bytes=32 * 1024 * 1024),
}
_NAME = re.compile(r"claude-(?P<line>[a-z]{3,12})-(?P<major>[0-9]{1,2})(?:[-.](?P<minor>[0-9]{1,2}))?(?![0-9])")


def canonical(model: str) -> str:
    """The plain name: `us.anthropic.claude-haiku-4-5-20251001-v1:0` → `claude-haiku-4-5`; others as they are."""
    match = _NAME.search(model.lower()[:200])
    if match is None:
        return model
    minor = f"-{match['minor']}" if match["minor"] else ""
    return f"claude-{match['line']}-{match['major']}{minor}"


def limits_for(
    model: str,
    *,
    context_window_tokens: int | None = None,
    max_output_tokens: int | None = None,
    known: ModelLimits | None = None,
) -> ModelLimits:
    """The limits of a model: what the session sets, then `known` (the Models API), the table, the default."""
    row = _TABLE.get(canonical(model))
    found = known or (row[0] if row else ModelLimits(DEFAULT_WINDOW_TOKENS, DEFAULT_OUTPUT_TOKENS))
    if known and row:
        found = replace(found, min_cacheable_tokens=row[0].min_cacheable_tokens)  # no API tells this one
    if max_output_tokens:
        found = replace(found, max_output_tokens=max_output_tokens)
    if context_window_tokens:
        found = replace(found, context_window_tokens=context_window_tokens, source="session")
    return found


def price(model: str, usage: Usage, *, cache_ttl: Literal["5m", "1h"] = "5m", batch: bool = False) -> Decimal | None:
    """What a call cost in US dollars, or None for a model without a known price.

    `usage` does not say how long its cache writes live, so `cache_ttl` does. Batches cost half.
    """
    rates = _rates(canonical(model), usage)
    if rates is None:
        return None
    prompt = (
        usage.input_tokens
        + usage.cache_creation_input_tokens * CACHE_WRITE_FACTORS[cache_ttl]
        + usage.cache_read_input_tokens * rates.cache_read_factor
    )
    whole = (prompt * rates.input + usage.output_tokens * rates.output) / _PER_TOKEN
    return whole * BATCH_FACTOR if batch else whole


def _rates(name: str, usage: Usage) -> Price | None:
    tier = _TIERS.get(name)
    if tier and usage.prompt_tokens > tier.above_tokens:
        return tier.price
    row = _TABLE.get(name)
    return row[1] if row else None


def platform_facts(platform: Platform) -> PlatformFacts:
    """What the platform offers: batches, Models API, count_tokens, and the largest body it takes."""
    return _PLATFORMS[platform]


def known_models() -> tuple[str, ...]:
    """The names in the table, newest first."""
    return tuple(_TABLE)
