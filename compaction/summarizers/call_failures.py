"""The errors of a call that got no proper reply: silence, a broken connection, a stream that ends early."""

from __future__ import annotations

from compaction import errors

_OK = 200  # the status had already arrived when the reply went wrong


def silent(waited_seconds: float, *, request_id: str | None = None) -> errors.ProviderError:
    """Nothing came for so long."""
    text = f"The model's API sent nothing for {waited_seconds:.0f} seconds. The job is tried again by itself."
    return errors.ProviderTimeout(text, request_id=request_id)


def too_slow(allowed_seconds: float, *, request_id: str | None = None) -> errors.ProviderError:
    """The whole call took longer than allowed."""
    text = f"The summary was not finished within {allowed_seconds:.0f} seconds. The job is tried again by itself."
    return errors.ProviderTimeout(text, request_id=request_id)


def unreachable() -> errors.ProviderError:
    """No connection, or it broke before the reply began."""
    text = "The connection to the model's API failed. The job is tried again by itself."
    return errors.ApiError(text, retryable=True)


def cut_off(*, request_id: str | None = None) -> errors.ProviderError:
    """The stream ended before the model's reply did; half a summary is none."""
    text = "The model's reply broke off. The job is tried again by itself."
    return errors.ApiError(text, retryable=True, status=_OK, request_id=request_id)


def not_a_message(*, request_id: str | None = None) -> errors.ProviderError:
    """Status 200 with something else than a message: a login page, a proxy's greeting, an empty body."""
    text = "The answer of the model's API is not a message. Check ANTHROPIC_BASE_URL and what stands before it."
    return errors.ApiError(text, retryable=True, status=_OK, request_id=request_id)


def endless(limit_bytes: int, *, request_id: str | None = None) -> errors.ProviderError:
    """The reply is larger than any summary may be."""
    text = f"The model's reply is larger than the {limit_bytes} bytes that a summary may have."
    return errors.ApiError(text, retryable=False, status=_OK, request_id=request_id)


def wrong_address() -> errors.ProviderError:
    """The base URL is no URL that can be called."""
    return errors.ApiError("The model's API has no usable address. Check ANTHROPIC_BASE_URL.", retryable=False)


def unusable_key() -> errors.ProviderError:
    """The SDK has no credentials, or refuses the ones it has before it sends anything."""
    return errors.AuthError("The model's API cannot be called: no usable key. Set ANTHROPIC_API_KEY of the workers.")
