"""The overflow classifier: numbers first, then words, then the status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.core.jsonbytes import Json
from compaction.summarizers.overflow import Overflow, classify


def anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


TOO_MUCH = "input length and `max_tokens` exceed context limit: {} + {} > 200000, decrease something"
OPENROUTER = (
    "This endpoint's maximum context length is 1000 tokens. However, you requested about 1500 tokens "
    "(1200 of text input, 100 of tool input, 200 in the output). Please reduce"
)
OPENAI = "This model's maximum context length is {} tokens. However, "
VLLM = OPENAI.format(40_000) + "your request has 30000 input tokens plus 20000 'max_tokens'."
MISTRAL = "Prompt contains 900 tokens and 0 draft tokens, too large for model with 800 maximum context length"
XAI = "This model's maximum prompt length is 800 but the request contains 900 tokens."
GEMINI = "The input token count (9000) exceeds the maximum number of tokens allowed (8000)."

COUNTED = [  # body, tokens of the input, limit, gap, whether the input alone leaves 8,000 tokens
    (anthropic("prompt is too long: 250000 tokens > 200000 maximum"), 250_000, 200_000, 50_000, False),
    (anthropic(TOO_MUCH.format(150_000, 60_000)), 150_000, 200_000, 10_000, True),
    (anthropic(TOO_MUCH.format(192_000, 8_001)), 192_000, 200_000, 1, True),
    (anthropic(TOO_MUCH.format(192_001, 8_000)), 192_001, 200_000, 1, False),
    ("prompt tokens (201) exceed model maximum (200)", 201, 200, 1, False),
    (OPENROUTER, 1_300, 1_000, 500, False),
    (OPENAI.format("1,000") + "your messages resulted in 1,250 tokens.", 1_250, 1_000, 250, False),
    (VLLM, 30_000, 40_000, 10_000, True),
    ("Input length (500) exceeds model's maximum context length (400).", 500, 400, 100, False),
    ("The input (500 tokens) is longer than the model's context length (400 tokens).", 500, 400, 100, False),
    (GEMINI, 9_000, 8_000, 1_000, False),
    ({"error": {"message": "prompt token count of 900 exceeds the limit of 800"}}, 900, 800, 100, False),
    ("Your request exceeded model token limit: 800 (requested: 900)", 900, 800, 100, False),
    ({"error": {"n_prompt_tokens": 900, "n_ctx": 800, "type": "exceed_context_size_error"}}, 900, 800, 100, False),
    (MISTRAL, 900, 800, 100, False),
    (XAI, 900, 800, 100, False),
]


@pytest.mark.parametrize(("body", "actual", "limit", "gap", "output_first"), COUNTED)
def test_a_refusal_with_numbers_gives_the_gap_and_what_the_provider_counted(
    body: Json, actual: int, limit: int, gap: int, output_first: bool
) -> None:
    verdict = classify(400, body)
    assert verdict == Overflow(category="tokens", gap=gap, actual=actual, limit=limit, output_first=output_first)
    assert verdict.category == "tokens"


def test_counts_that_say_at_least_prove_nothing_about_the_room_that_is_left() -> None:
    text = (
        OPENAI.format(64_000) + "you requested 32000 output tokens and your prompt contains at least 32001 input "
        "tokens, for a total of at least 64001 tokens."
    )
    verdict = classify(400, text)
    assert (verdict.gap, verdict.lower_bound, verdict.output_first) == (1, True, False)


CAPPED = "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for some-model"
BIG_IMAGE = "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"
PER_MINUTE = "This request would exceed the limit of 40,000 input tokens per minute; reduce the prompt length"
FREE_MINUTE = {"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota. Retry in 30s."}}

WORDED = [
    (400, {"message": "Input is too long for requested model."}, "tokens"),
    (413, {"error": {"message": json.dumps(anthropic("Prompt is too long")), "code": "413"}}, "tokens"),
    (400, {"error": {"code": "context_length_exceeded", "message": "Shorten the messages."}}, "tokens"),
    (500, {"detail": "upstream said: context window exceeded for this call"}, "tokens"),
    (400, "Too many input tokens", "tokens"),
    (413, anthropic("The request is over the allowed number of bytes", "request_too_large"), "bytes"),
    (413, "<html><body>413 Request Entity Too Large</body></html>", "bytes"),
    (413, None, "bytes"),
    (400, "Invalid 'input[3].text': string too long. Expected maximum length 10, got length 12.", "bytes"),
    (400, anthropic(BIG_IMAGE), "media"),
    (400, anthropic("Too much media: 0 document pages + 101 images > 100"), "media"),
    (400, anthropic("messages.4: Could not process PDF"), "media"),
    (404, {"error": {"message": "No endpoints found that support image input"}}, "media"),
    (400, CAPPED, "output_cap"),
    (400, "max_tokens is too large: 40000. This model supports at most 16384 completion tokens", "output_cap"),
    (429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit"),
    (None, "Too many tokens per day, try tomorrow", "rate_limit"),
    (429, anthropic(PER_MINUTE, "rate_limit_error"), "rate_limit"),
    (429, "", "rate_limit"),
    (429, anthropic("Extra usage is required for long context requests.", "rate_limit_error"), "billing"),
    (400, anthropic("Your credit balance is too low."), "billing"),
    (429, {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota."}}, "billing"),
    (429, FREE_MINUTE, "rate_limit"),
    (402, None, "billing"),
    (400, anthropic("The long context beta is not yet available for this subscription."), "config"),
    (401, anthropic("invalid x-api-key", "authentication_error"), "config"),
    (400, "Model context window too small (minimum is 128k tokens)", "config"),
    (400, "", "unknown"),
    (400, anthropic("messages.2: something else is wrong"), "unknown"),
    (529, anthropic("Overloaded", "overloaded_error"), "unknown"),
]


@pytest.mark.parametrize(("status", "body", "category"), WORDED)
def test_a_refusal_without_counts_is_told_apart_by_its_words(status: int | None, body: Json, category: str) -> None:
    verdict = classify(status, body)
    assert verdict.category == category
    assert verdict.gap is None


def test_the_output_cap_comes_with_the_most_that_the_model_writes() -> None:
    assert classify(400, CAPPED).limit == 8_192
    gemini = "it has a maxOutputTokens value of 99 but the supported range is from 1 (inclusive) to 65 (exclusive)."
    assert classify(400, gemini).limit == 64


@pytest.mark.parametrize(
    ("status", "body", "actual", "limit"),
    [
        (400, "string too long. Expected a string with maximum length 500, but got a string with length 800", 800, 500),
        (413, "Request body size 9,000 exceeds the maximum allowed size of 5,000 bytes", 9_000, 5_000),
        (413, {"error": "payload too large: 9000 bytes > 5000"}, 9_000, 5_000),
        (413, "Body exceeds the limit of 5000 bytes", None, 5_000),
        (413, "Request body too large: maximum size 5000, got 9000", 9_000, 5_000),
        (413, "Request size 40 MB exceeds the limit of 32 MB", None, None),
        (413, "Request body size 10 exceeds the size of 500", None, None),
    ],
)
def test_a_limit_on_bytes_comes_with_its_numbers_where_they_are_plain(
    status: int, body: Json, actual: int | None, limit: int | None
) -> None:
    """Never as a gap: that is counted in tokens. Megabytes and nonsense are no numbers."""
    assert classify(status, body) == Overflow(category="bytes", actual=actual, limit=limit)


def test_the_overflow_in_a_chain_of_causes_wins_over_the_other_causes() -> None:
    text = (
        "proxy.BadRequest: {'message': 'blocks cannot stand in one turn'}. Fallback failed with rate limit, then: "
        'proxy.ContextWindowExceededError - b\'{"error":{"message":"prompt is too long: 30 tokens > 20 maximum"}}\''
    )
    assert classify(400, None, text).gap == 10


def test_a_wrapped_body_is_read_through_strings_line_breaks_and_escapes() -> None:
    inner = json.dumps(anthropic("prompt is too long: 30 tokens \\u003e 20\n  maximum"))
    body = {"error": {"message": json.dumps({"error": {"metadata": {"raw": inner}}})}}
    assert classify(502, body) == Overflow(category="tokens", gap=10, actual=30, limit=20)


@pytest.mark.parametrize("member", ["input", "messages", "prompt", "request", "ctx"])
def test_what_a_validator_echoes_of_our_request_is_not_read(member: str) -> None:
    body = {"detail": [{"msg": "value is not valid", member: "prompt is too long: 30 tokens > 20 maximum"}]}
    assert classify(422, body).category == "unknown"


def test_numbers_that_do_not_overflow_give_no_gap() -> None:
    assert classify(400, "prompt is too long: 10 tokens > 20 maximum").gap is None


HOSTILE = [
    "prompt is too long: " * 200_000,
    "maximum context length is 1 tokens" + " requested" * 100_000,
    "input length (" + "9" * 1_000_000,
    "image " * 300_000,
    '{"a":' * 50_000,
    "\\" * 1_000_000,
    {"a": [{"b": "x" * 1_000}] * 100_000},
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_body_is_classified_without_reading_all_of_it(body: Json) -> None:
    """A pattern that backtracks over these would run into the test's time limit."""
    assert classify(400, body).gap is None


def test_a_body_that_is_nested_too_deep_is_classified_all_the_same() -> None:
    body: Json = "prompt is too long"
    for _ in range(5_000):
        body = {"error": body}
    assert classify(413, body).category == "bytes"


def test_bytes_that_are_no_text_are_unknown() -> None:
    assert classify(None, b"\xff\xfe\x00prompt").category == "unknown"


def test_the_end_of_a_long_log_is_read_too() -> None:
    log = "frame of a traceback\n" * 5_000 + "ValueError: prompt is too long: 30 tokens > 20 maximum"
    assert classify(500, log).gap == 10
