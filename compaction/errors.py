"""The one error tree. Every error has a stable `code`; HTTP status codes live in `api.errors` alone.

    CompactdError
    ├── JobError                      ends an attempt; `code` is what the job reports (DESIGN §5)
    │   ├── ProviderError             the model's API said no
    │   │   ├── PromptTooLong         prompt_too_long    (tokens, bytes or media; carries the gap)
    │   │   ├── RequestTooLarge       request_too_large
    │   │   ├── RateLimited           rate_limited       retryable, uses up no attempt
    │   │   │   └── Throttled         rate_limited       by our own limits, before any call
    │   │   ├── Overloaded            overloaded         retryable
    │   │   ├── ProviderTimeout       timeout            retryable
    │   │   ├── ApiError              api_error          retryable when the provider is at fault
    │   │   ├── AuthError             auth_error         pauses the provider
    │   │   ├── BillingError          billing_error      pauses the provider
    │   │   └── ModelNotFound         model_not_found
    │   ├── NoSummary                 no_summary
    │   ├── SummaryTruncated          summary_truncated
    │   ├── Refusal                   refusal
    │   ├── NotEffective              not_effective
    │   ├── InvalidSession            invalid_session
    │   ├── HookRejected              hook_rejected
    │   ├── AttemptTimeout            timeout            retryable
    │   ├── WorkerLost                worker_lost
    │   ├── Cancelled                 cancelled
    │   └── Internal                  internal
    ├── RequestError                  a caller asked for something that cannot be done; nothing was changed
    │   ├── InvalidRequest            invalid_request
    │   ├── NotFound                  not_found
    │   ├── Unauthorized              unauthorized
    │   ├── Forbidden                 forbidden
    │   ├── Conflict                  conflict
    │   ├── Stale                     stale
    │   ├── TooLarge                  too_large
    │   ├── IdempotencyMismatch       idempotency_mismatch
    │   ├── TooManyRequests           rate_limited
    │   └── Unavailable               unavailable
    └── LeaseLost                     another worker holds the job now; the attempt's work is thrown away

The docstring of a class is its default message. Messages go to clients and logs: they never quote a transcript, a
prompt, a key or a provider's raw answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

MAX_MESSAGE_CHARS = 500  # what a person reads in a table; a longer text is a transcript in disguise


class CompactdError(Exception):
    """compactd could not do what was asked."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str | None = None) -> None:
        text = message or " ".join((type(self).__doc__ or "").split())
        self.message = text[:MAX_MESSAGE_CHARS]
        super().__init__(self.message)


class JobError(CompactdError):
    """The job failed."""

    retryable: bool = False
    retry_after_seconds: float | None = None
    counts_for_breaker: bool = True  # whether it may say something about the session
    pauses_provider: ClassVar[bool] = False
    snoozes: ClassVar[bool] = False  # the job only waits: neither an attempt nor a model call is used up


class ProviderError(JobError):
    """The model's API refused the request."""

    code = "api_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds


class PromptTooLong(ProviderError):
    """The history is too long for the model, even without its oldest rounds. Use a model with a larger window."""

    code = "prompt_too_long"

    def __init__(  # noqa: PLR0913 - the facts a provider's refusal can carry
        self,
        message: str | None = None,
        *,
        unit: Literal["tokens", "bytes", "media"] = "tokens",
        gap: int | None = None,
        actual: int | None = None,
        limit: int | None = None,
        lower_bound: bool = False,
        output_first: bool = False,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, status=status, request_id=request_id)
        self.unit = unit
        self.gap = gap
        self.actual = actual
        self.limit = limit
        self.lower_bound = lower_bound
        self.output_first = output_first


class RequestTooLarge(ProviderError):
    """The request has more bytes than the model's API takes. Remove large files or images from the session."""

    code = "request_too_large"


class RateLimited(ProviderError):
    """The model's API asked us to slow down. The job is tried again by itself."""

    code = "rate_limited"
    retryable = True
    snoozes = True
    counts_for_breaker = False


class Throttled(RateLimited):
    """The limits set for the model's API are used up for now. The job goes on by itself when there is room."""

    code = "rate_limited"


class Overloaded(ProviderError):
    """The model's API is overloaded. The job is tried again by itself."""

    code = "overloaded"
    retryable = True
    counts_for_breaker = False


class ProviderTimeout(ProviderError):
    """The model's API did not answer in time. The job is tried again by itself."""

    code = "timeout"
    retryable = True
    counts_for_breaker = False


class ApiError(ProviderError):
    """The model's API failed. The job is tried again by itself when the fault is the provider's."""

    code = "api_error"

    def __init__(  # noqa: PLR0913 - two arguments more than its parent
        self,
        message: str | None = None,
        *,
        retryable: bool = False,
        output_limit_tokens: int | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, status=status, request_id=request_id, retry_after_seconds=retry_after_seconds)
        self.retryable = retryable
        self.counts_for_breaker = not retryable  # a fault of the provider's is none of the session's
        self.output_limit_tokens = output_limit_tokens  # the most output the model takes, when we asked for more


class AuthError(ProviderError):
    """The model's API refused our key. Check ANTHROPIC_API_KEY of the workers."""

    code = "auth_error"
    counts_for_breaker = False
    pauses_provider = True


class BillingError(ProviderError):
    """The account at the model's API has no credit left. Top it up; the jobs go on by themselves."""

    code = "billing_error"
    counts_for_breaker = False
    pauses_provider = True


class ModelNotFound(ProviderError):
    """The model does not exist at the provider. Set another model on the session."""

    code = "model_not_found"


class NoSummary(JobError):
    """The model answered without a usable summary."""

    code = "no_summary"


class SummaryTruncated(JobError):
    """The model's summary hit the output limit and is incomplete."""

    code = "summary_truncated"


class Refusal(JobError):
    """The model refused to summarise this session."""

    code = "refusal"


class NotEffective(JobError):
    """The summary would not make the session smaller. The history stays as it was."""

    code = "not_effective"


class InvalidSession(JobError):
    """The stored session cannot be compacted. Check its messages."""

    code = "invalid_session"


class HookRejected(JobError):
    """A PreCompact hook vetoed this compaction."""

    code = "hook_rejected"


class AttemptTimeout(JobError):
    """The attempt took longer than an attempt may. The job is tried again by itself."""

    code = "timeout"
    retryable = True


class WorkerLost(JobError):
    """The worker died during this job several times. The job was stopped to protect the others."""

    code = "worker_lost"
    counts_for_breaker = False


class Cancelled(JobError):
    """The job was cancelled."""

    code = "cancelled"
    counts_for_breaker = False


class Internal(JobError):
    """compactd failed. The operator finds the cause in the worker's log under this job's id."""

    code = "internal"


class RequestError(CompactdError):
    """The request cannot be carried out."""

    code = "invalid_request"


class InvalidRequest(RequestError):
    """The request is not valid."""

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields  # (path in the body, what is wrong with it)


class NotFound(RequestError):
    """There is no such thing for this key."""

    code = "not_found"


class Unauthorized(RequestError):
    """Send a valid key as `Authorization: Bearer ck_…`."""

    code = "unauthorized"


class Forbidden(RequestError):
    """The key lacks the scope for this call."""

    code = "forbidden"


class Conflict(RequestError):
    """The state of the resource does not allow this call."""

    code = "conflict"


class Stale(RequestError):
    """The history that this result replaces has changed. Read the session again and compact anew."""

    code = "stale"

    def __init__(self, message: str | None = None, *, changes: Mapping[str, int | None] | None = None) -> None:
        super().__init__(message)
        self.members = dict(changes or {})  # what has changed, in numbers; they stand in the problem document


class TooLarge(RequestError):
    """The body is larger than this server takes. Send it in smaller batches."""

    code = "too_large"


class IdempotencyMismatch(RequestError):
    """This Idempotency-Key was used with another body. Use a new key."""

    code = "idempotency_mismatch"


class TooManyRequests(RequestError):
    """Too many requests or waiting jobs. Try again after the time in Retry-After."""

    code = "rate_limited"

    def __init__(self, message: str | None = None, *, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(RequestError):
    """The service cannot do this right now. Try again after the time in Retry-After."""

    code = "unavailable"

    def __init__(self, message: str | None = None, *, retry_after_seconds: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class LeaseLost(CompactdError):
    """Another worker holds this job now; what this attempt did is thrown away."""

    code = "lease_lost"
