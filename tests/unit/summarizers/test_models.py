"""The model table: names, limits and prices. Expected dollars are worked out by hand in facts §6."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.core.messages import Usage
from compaction.summarizers.models import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_WINDOW_TOKENS,
    ModelLimits,
    canonical,
    known_models,
    limits_for,
    platform_facts,
    price,
)

NAMES = [
    ("claude-haiku-4-5", "claude-haiku-4-5"),
    ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
    ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
    ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
    ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
    ("anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
    ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5"),
    ("claude-sonnet-4-6[1m]", "claude-sonnet-4-6"),
    ("Claude-Opus-5-5-latest", "claude-opus-5-5"),
    ("claude-opus-5", "claude-opus-5"),
    ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ("small-output-model", "small-output-model"),
]


@pytest.mark.parametrize(("given", "plain"), NAMES)
def test_prefixes_dates_and_versions_come_off_a_models_name(given: str, plain: str) -> None:
    assert canonical(given) == plain


def test_a_known_model_has_the_limits_of_the_table() -> None:
    assert limits_for("eu.anthropic.claude-haiku-4-5-20251001-v1:0") == ModelLimits(200_000, 64_000, 4_096, "table")
    assert limits_for("claude-sonnet-5-5") == ModelLimits(1_000_000, 128_000, 512, "table")


def test_an_unknown_model_gets_the_conservative_default() -> None:
    limits = limits_for("some-gateways-model")
    assert (limits.context_window_tokens, limits.max_output_tokens) == (DEFAULT_WINDOW_TOKENS, DEFAULT_OUTPUT_TOKENS)
    assert limits.source == "default"


def test_the_session_outvotes_the_models_api_and_the_api_the_table() -> None:
    api = ModelLimits(500_000, 90_000, source="api")
    assert limits_for("claude-haiku-4-5", known=api) == ModelLimits(500_000, 90_000, 4_096, "api")
    both = limits_for("claude-haiku-4-5", known=api, context_window_tokens=65_536, max_output_tokens=8_192)
    assert both == ModelLimits(65_536, 8_192, 4_096, "session")
    assert limits_for("claude-haiku-4-5", max_output_tokens=8_192) == ModelLimits(200_000, 8_192, 4_096, "table")


CACHED = Usage(input_tokens=4_500, output_tokens=6_000, cache_read_input_tokens=160_000)
COLD = Usage(input_tokens=164_500, output_tokens=6_000)
WRITTEN = Usage(output_tokens=6_000, cache_creation_input_tokens=164_500)
DOLLARS = [  # facts §6: a compaction of 160,000 cached and 4,500 new tokens with 6,000 of output
    ("claude-opus-5-5", CACHED, "0.17"),
    ("claude-opus-5-5", COLD, "0.778"),
    ("claude-opus-5-5", WRITTEN, "0.9425"),
    ("claude-sonnet-5-5", CACHED, "0.085"),
    ("claude-sonnet-5-5", COLD, "0.389"),
    ("claude-fable-5-1", CACHED, "0.385"),
    ("claude-fable-5-1", COLD, "1.945"),
    ("claude-haiku-5-5", CACHED, "0.02525"),
    ("claude-haiku-5-5", COLD, "0.09725"),
]


@pytest.mark.parametrize(("model", "usage", "dollars"), DOLLARS)
def test_a_call_costs_what_the_price_list_says(model: str, usage: Usage, dollars: str) -> None:
    assert price(model, usage) == Decimal(dollars)


def test_a_batch_costs_half_and_an_hours_cache_write_double() -> None:
    assert price("claude-opus-5-5", COLD, batch=True) == Decimal("0.389")
    assert price("claude-opus-5-5", WRITTEN, cache_ttl="1h") == Decimal("1.436")


def test_the_cheap_model_is_dearer_only_above_a_hundred_thousand_tokens_of_prompt() -> None:
    assert price("claude-haiku-5-5", Usage(input_tokens=100_000, output_tokens=1_000)) == Decimal("0.0105")
    assert price("claude-haiku-5-5", Usage(input_tokens=100_001)) == Decimal("0.0500005")


def test_a_model_without_a_known_price_has_none() -> None:
    assert price("some-gateways-model", COLD) is None


def test_nothing_sent_costs_nothing() -> None:
    assert all(price(model, Usage()) == 0 for model in known_models())


def test_batches_exist_on_two_platforms_only() -> None:
    assert platform_facts("anthropic").batches
    assert platform_facts("aws").batches
    assert not any(platform_facts(name).batches for name in ("google_cloud", "vertex", "bedrock", "foundry"))
