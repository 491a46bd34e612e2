"""From what a provider answers to the code that the job reports."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from compaction import errors
from compaction.core.jsonbytes import Json
from compaction.summarizers.provider_errors import Failure, error_for

SECRET = "TRANSCRIPT-CANARY-5512"
MIB = 1024 * 1024


def anthropic(kind: str, message: str = "it did not work") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_body1"}


def error(status: int | None, body: Json = None, **facts: Any) -> errors.ProviderError:  # noqa: ANN401 - of Failure
    return error_for(Failure(status=status, body=body, **facts), now_seconds=1_800_000_000.0)


ANSWERS = [  # status, body, class, whether the job tries again
    (401, anthropic("authentication_error", "invalid x-api-key"), errors.AuthError, False),
    (403, anthropic("permission_error"), errors.AuthError, False),
    (400, anthropic("invalid_request_error", "This organization has been disabled."), errors.AuthError, False),
    (402, anthropic("billing_error"), errors.BillingError, False),
    (429, anthropic("rate_limit_error", "reached: enforced_spend_limit_reached"), errors.BillingError, False),
    (400, anthropic("invalid_request_error", "Your credit balance is too low"), errors.BillingError, False),
    (404, anthropic("not_found_error", "model: claude-gone-1"), errors.ModelNotFound, False),
    (400, {"message": "The provided model identifier is invalid."}, errors.ModelNotFound, False),
    (403, {"message": "You don't have access to the model with the specified model ID."}, errors.ModelNotFound, False),
    (404, "404 page not found", errors.ApiError, False),
    (408, None, errors.ProviderTimeout, True),
    (504, "<html>gateway</html>", errors.ProviderTimeout, True),
    (500, anthropic("timeout_error"), errors.ProviderTimeout, True),
    (429, anthropic("rate_limit_error"), errors.RateLimited, True),
    (429, anthropic("rate_limit_error", "ramp_limit_exceeded"), errors.RateLimited, True),
    (400, {"__type": "ThrottlingException", "message": "Too many tokens, please wait"}, errors.RateLimited, True),
    (529, anthropic("overloaded_error", "Overloaded"), errors.Overloaded, True),
    (503, None, errors.Overloaded, True),
    (400, anthropic("overloaded_error"), errors.Overloaded, True),
    (500, anthropic("api_error"), errors.ApiError, True),
    (400, anthropic("api_error"), errors.ApiError, True),
    (400, anthropic("internalServerException"), errors.ApiError, True),
    (409, anthropic("conflict_error"), errors.ApiError, True),
    (501, None, errors.ApiError, False),
    (400, anthropic("invalid_request_error"), errors.ApiError, False),
    (400, "", errors.ApiError, False),
    (422, {"detail": []}, errors.ApiError, False),
    (302, "", errors.ApiError, False),
    (403, "<html><body>Access denied by the firewall</body></html>", errors.ApiError, False),
]


@pytest.mark.parametrize(("status", "body", "kind", "again"), ANSWERS)
def test_an_answer_becomes_the_error_that_it_means(
    status: int, body: Json, kind: type[errors.ProviderError], again: bool
) -> None:
    found = error(status, body)
    assert type(found) is kind
    assert found.retryable is again
    assert found.status == status


IN_STREAM = [
    ("overloaded_error", errors.Overloaded),
    ("api_error", errors.ApiError),
    ("rate_limit_error", errors.RateLimited),
    ("authentication_error", errors.AuthError),
    ("billing_error", errors.BillingError),
    ("timeout_error", errors.ProviderTimeout),
]


@pytest.mark.parametrize(("kind", "expected"), IN_STREAM)
def test_an_error_inside_a_stream_of_status_200_goes_by_its_type(
    kind: str, expected: type[errors.ProviderError]
) -> None:
    assert type(error(200, anthropic(kind))) is expected


def test_a_prompt_that_is_too_long_keeps_the_numbers_and_the_requests_id() -> None:
    body = anthropic("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
    found = error(400, body, headers={"request-id": "req_header1"})
    assert isinstance(found, errors.PromptTooLong)
    assert (found.unit, found.gap, found.actual, found.limit) == ("tokens", 50_000, 250_000, 200_000)
    assert (found.status, found.request_id) == (400, "req_header1")


def test_a_refusal_that_a_gateway_wraps_in_a_500_is_still_a_prompt_that_is_too_long() -> None:
    found = error(500, {"error": {"message": 'upstream: {"message":"Input is too long for requested model."}'}})
    assert isinstance(found, errors.PromptTooLong)
    assert (found.unit, found.gap) == ("tokens", None)


def test_the_numbers_of_a_byte_limit_in_the_text_go_before_the_known_limits() -> None:
    """A gateway's own limit is far below the API's; the text may count one part of the body alone."""
    found = error(413, "request body too large: 900000 bytes > 600000", sent_bytes=MIB)
    assert isinstance(found, errors.PromptTooLong)
    assert (found.unit, found.actual, found.limit, found.gap) == ("bytes", 900_000, 600_000, 300_000)
    limit_alone = error(413, "the body exceeds the limit of 600000 bytes", sent_bytes=700_000)
    assert isinstance(limit_alone, errors.PromptTooLong)
    assert (limit_alone.actual, limit_alone.gap) == (700_000, 100_000)


def test_413_means_bytes_unless_it_speaks_of_the_prompt() -> None:
    found = error(413, anthropic("request_too_large"), sent_bytes=34 * MIB)
    assert isinstance(found, errors.PromptTooLong)
    assert (found.unit, found.actual, found.limit, found.gap) == ("bytes", 34 * MIB, 32 * MIB, 2 * MIB)
    tokens = error(413, anthropic("invalid_request_error", "Prompt is too long"), sent_bytes=34 * MIB)
    assert isinstance(tokens, errors.PromptTooLong)
    assert tokens.unit == "tokens"


def test_a_413_for_a_small_body_names_no_limit() -> None:
    found = error(413, None, sent_bytes=MIB)
    assert isinstance(found, errors.PromptTooLong)
    assert (found.actual, found.limit, found.gap) == (MIB, None, None)


def test_a_server_that_breaks_over_a_huge_body_is_to_get_a_smaller_one() -> None:
    found = error(500, anthropic("api_error"), sent_bytes=21 * MIB)
    assert isinstance(found, errors.PromptTooLong)
    assert (found.unit, found.limit) == ("bytes", 20 * MIB)
    assert type(error(500, anthropic("api_error"), sent_bytes=19 * MIB)) is errors.ApiError


def test_a_refused_image_is_told_as_media() -> None:
    found = error(
        400, anthropic("invalid_request_error", "messages.3: At least one of the image dimensions exceed 2000")
    )
    assert isinstance(found, errors.PromptTooLong)
    assert found.unit == "media"


def test_too_much_output_asked_for_carries_what_the_model_writes() -> None:
    text = "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for a-model"
    found = error(400, anthropic("invalid_request_error", text))
    assert isinstance(found, errors.ApiError)
    assert (found.retryable, found.output_limit_tokens) == (False, 8_192)


def test_retry_after_reaches_the_error() -> None:
    assert error(429, anthropic("rate_limit_error"), headers={"retry-after": "12"}).retry_after_seconds == 12.0
    assert error(529, None, headers={"retry-after": "99999"}).retry_after_seconds == 3_600.0


def test_the_provider_may_say_itself_whether_trying_again_helps() -> None:
    assert not error(500, None, headers={"x-should-retry": "false"}).retryable
    assert error(400, None, headers={"x-should-retry": "true"}).retryable


def test_the_errors_type_may_stand_in_amazons_header() -> None:
    found = error(400, {"message": "wait"}, headers={"x-amzn-errortype": "ModelNotReadyException:http://x/"})
    assert type(found) is errors.Overloaded


IDS = [
    ({"request-id": "req_1"}, None, "req_1"),
    ({"x-amzn-requestid": "a-b-c"}, None, "a-b-c"),
    ({}, anthropic("api_error"), "req_body1"),
    ({"request-id": "two words"}, None, None),
    ({"request-id": "x" * 201}, None, None),
    ({}, {"request_id": 7}, None),
]


@pytest.mark.parametrize(("headers", "body", "found"), IDS)
def test_a_requests_id_is_kept_when_it_is_printable(headers: dict[str, str], body: Json, found: str | None) -> None:
    assert error(500, body, headers=headers).request_id == found


@pytest.mark.parametrize("status", [200, 400, 401, 402, 403, 404, 413, 429, 500, 503, 529])
def test_the_providers_words_are_in_no_error(status: int) -> None:
    found = error(status, anthropic("invalid_request_error", f"messages.0: {SECRET} is not valid"))
    assert SECRET not in str(found) + repr(found) + repr(found.__dict__)
    assert SECRET.encode() not in pickle.dumps(found)


def test_an_error_survives_pickling_with_its_facts() -> None:
    found = error(400, anthropic("invalid_request_error", "prompt is too long: 30 tokens > 20 maximum"))
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes
    assert (type(again), again.gap, again.unit, again.status) == (errors.PromptTooLong, 10, "tokens", 400)
