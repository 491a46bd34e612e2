"""From a refusal of the model's API to one error of our tree. Pure: facts in, an exception out, never raised here.

facts/anthropic.md §1 holds the traps: the status alone lies (a 200 stream carries an error event, a gateway wraps a
refusal in a 500, a server fault comes as 400), so wording, type and status are asked in this order. Every message is
our own text; the provider's words stay out of it, because error bodies quote transcripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from compaction import errors
from compaction.core.jsonbytes import Json
from compaction.core.retry_after import retry_after_seconds
from compaction.summarizers.error_text import flatten
from compaction.summarizers.overflow import Overflow, classify

FRAGILE_BYTES = 20 * 1024 * 1024  # bodies over this fail with 5xx now and then (bug reports of two clients)
BODY_LIMITS_BYTES = (32 * 1024 * 1024, 30 * 1024 * 1024, FRAGILE_BYTES)  # Claude API, Google, Bedrock: facts §5, §8

_REQUEST_ID_HEADERS = ("request-id", "x-request-id", "x-amzn-requestid")
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,200}")  # Anthropic's have 28
_TYPE = re.compile(r"\b(?:__type|type|error_?code|code|status)[\"']? ?[=:] ?[\"']?([a-z][a-z0-9_.#:/]{3,80})")
_PAGE = re.compile(r"\s*(?:<!doctype|<html)")
_AUTH = re.compile(
    r"invalid (?:x-)?api[_ -]?key|invalid_api_key|organization (?:has been|is) disabled|organization_on_hold"
)
_MODEL = re.compile(
    r"model_not_found|model identifier is invalid|not a valid model|invalid model name|reached the end of its life"
    r"|foundation model|access to the model|model .{0,80}?(?:does not exist|not found)|no such model|unknown model"
)
_ABOUT_MODEL = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
)  # statuses under which gateways say that a model does not exist

Kind = Callable[..., errors.ProviderError]  # called with status, request_id and retry_after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A reply that refuses. `status` is None when there was no HTTP status, and 200 for an error inside a stream."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: Json | str | bytes | None = None
    sent_bytes: int = 0  # size of the request's body

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request, for its support; None when it gave none that is printable."""
        candidates = [self.headers.get(name) for name in _REQUEST_ID_HEADERS]
        if isinstance(self.body, Mapping):
            candidates.append(self.body.get("request_id"))
        usable = (name for name in candidates if isinstance(name, str) and _REQUEST_ID.fullmatch(name))
        return next(usable, None)


def error_for(failure: Failure, *, now_seconds: float) -> errors.ProviderError:
    """The error that `failure` means. `now_seconds` is Unix time, for a Retry-After that is a date."""
    verdict = classify(failure.status, failure.body)
    match verdict.category:
        case "tokens":
            return _too_long(failure, verdict)
        case "bytes":
            return _too_large(failure, verdict)
        case "media":
            return _media(failure)
        case "output_cap":
            return _capped(failure, verdict)
        case "rate_limit" | "billing" as category:
            kind = errors.RateLimited if category == "rate_limit" else errors.BillingError
            return _plain(failure, kind, now_seconds)
        case _:
            return _by_type_or_status(failure, now_seconds)


def _too_long(failure: Failure, verdict: Overflow) -> errors.ProviderError:
    return errors.PromptTooLong(
        gap=verdict.gap,
        actual=verdict.actual,
        limit=verdict.limit,
        lower_bound=verdict.lower_bound,
        output_first=verdict.output_first,
        status=failure.status,
        request_id=failure.request_id,
    )


def _too_large(failure: Failure, verdict: Overflow) -> errors.ProviderError:
    """Too many bytes, by the numbers in the text or else by the known limits. A text may count one part alone."""
    actual = verdict.actual or failure.sent_bytes
    limit = verdict.limit or next((size for size in BODY_LIMITS_BYTES if size < actual), None)
    return errors.PromptTooLong(
        "The request has more bytes than the model's API takes, even without media and the oldest rounds.",
        unit="bytes",
        gap=actual - limit if limit and actual > limit else None,
        actual=actual or None,
        limit=limit,
        status=failure.status,
        request_id=failure.request_id,
    )


def _media(failure: Failure) -> errors.ProviderError:
    text = "The model's API refused an image or a document of the session."
    return errors.PromptTooLong(text, unit="media", status=failure.status, request_id=failure.request_id)


def _capped(failure: Failure, verdict: Overflow) -> errors.ProviderError:
    return errors.ApiError(
        "The model writes less output than was asked for. Set max_output_tokens on the session.",
        output_limit_tokens=verdict.limit,
        status=failure.status,
        request_id=failure.request_id,
    )


def _plain(failure: Failure, kind: Kind, now_seconds: float) -> errors.ProviderError:
    after = retry_after_seconds(failure.headers, now_seconds=now_seconds)
    made = kind(status=failure.status, request_id=failure.request_id, retry_after_seconds=after)
    if isinstance(made, errors.ApiError):
        made.retryable = {"true": True, "false": False}.get(failure.headers.get("x-should-retry", ""), made.retryable)
    return made


def _by_type_or_status(failure: Failure, now_seconds: float) -> errors.ProviderError:
    said = flatten(failure.body)
    kind = _definite(failure, said) or _typed(failure, said) or _by_status(failure, said)
    huge = failure.sent_bytes > FRAGILE_BYTES and (failure.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR
    if huge and kind is _server_fault:
        return _too_large(
            failure, Overflow(category="bytes")
        )  # a server that breaks over a huge body is sent a smaller one, not the same again
    return _plain(failure, kind, now_seconds)


def _server_fault(**facts: Json) -> errors.ProviderError:
    text = f"The model's API failed (HTTP status {facts.get('status')}). The job is tried again by itself."
    return errors.ApiError(text, retryable=True, **facts)


def _our_fault(**facts: Json) -> errors.ProviderError:
    text = f"The model's API refused the request as invalid (HTTP status {facts.get('status')})."
    return errors.ApiError(text, retryable=False, **facts)


def _wrong_address(**facts: Json) -> errors.ProviderError:
    text = f"What answers is not the Messages API (HTTP status {facts.get('status')}). Check ANTHROPIC_BASE_URL."
    return errors.ApiError(text, retryable=False, **facts)


_DEFINITE: dict[int, Kind] = {
    401: errors.AuthError,
    402: errors.BillingError,
    403: errors.AuthError,
    408: errors.ProviderTimeout,
    429: errors.RateLimited,
    504: errors.ProviderTimeout,
    524: errors.ProviderTimeout,  # Cloudflare: the origin did not answer in time
    529: errors.Overloaded,
}


def _definite(failure: Failure, said: str) -> Kind | None:
    """What statuses and words say that no type can outvote."""
    page = _PAGE.match(said) is not None
    if failure.status == HTTPStatus.FORBIDDEN and page:
        return _our_fault  # a firewall that dislikes one transcript is no reason to stop all jobs
    if failure.status in _ABOUT_MODEL and not page and _MODEL.search(said):
        return errors.ModelNotFound
    if _AUTH.search(said):
        return errors.AuthError
    return _DEFINITE.get(failure.status or 0)


_TYPES: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"overloaded|unavailable|notready", errors.Overloaded),
        (r"timeout|deadline_exceeded", errors.ProviderTimeout),
        (r"authentication|permission|unauthenticated|unrecognizedclient|expiredtoken|accessdenied", errors.AuthError),
        (r"model_?not_?found|resourcenotfound", errors.ModelNotFound),
        (r"^api_error|internal|server_?error|modelstreamerror|modelerrorexception", _server_fault),
    )
)


def _typed(failure: Failure, said: str) -> Kind | None:
    named = failure.headers.get("x-amzn-errortype", "").lower()
    for name in [named, *_TYPE.findall(said)]:
        for pattern, kind in _TYPES:
            if name and pattern.search(name):
                return kind
    return None


def _by_status(failure: Failure, said: str) -> Kind:
    status = failure.status or 0
    if status == HTTPStatus.NOT_FOUND:
        return errors.ModelNotFound if "not_found_error" in said else _wrong_address
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return errors.Overloaded
    if status == HTTPStatus.CONFLICT or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NEVER):
        return _server_fault
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return _wrong_address  # we do not follow redirects: they would carry a transcript to another host
    return _our_fault


_NEVER = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})  # the same again helps nobody
