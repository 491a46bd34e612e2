"""Visits: who has signed in, kept in a signed cookie. Each request asks whether the key still opens anything.

The cookie names the key and a print of its secret, never the key itself; it ends with the browser's session, after
VISIT_SECONDS, with the key, or when the key's secret is replaced.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from functools import cache
from typing import Any

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from compaction import telemetry
from compaction.settings import Settings

COOKIE = "compactd_visit"
FORM_COOKIE = "compactd_sign_in"  # another one: who opens the form again stays signed in
PATH = "/dashboard"
VISIT_SECONDS = 8 * 3600  # a working day; then one signs in again
FORM_SECONDS = 3600  # how long a sign-in form that was opened may be sent
TOKEN_BYTES = 18  # 144 random bits

_log = telemetry.logger("dashboard")


@dataclass(frozen=True, slots=True)
class Visit:
    """What the cookie says. `csrf` stands in every form of this visit."""

    public_id: str
    print: str
    looks_only: bool
    csrf: str


def begin(settings: Settings, request: Request, response: Response, visit: Visit) -> None:
    """Sets the cookie of a new visit."""
    value = _signer(settings, "visit").dumps([visit.public_id, visit.print, visit.looks_only, visit.csrf])
    _set(request, response, COOKIE, value)


def end(request: Request, response: Response) -> None:
    """Takes the cookie away."""
    response.delete_cookie(COOKIE, path=PATH, secure=_is_secure(request), httponly=True, samesite="strict")


def read(settings: Settings, request: Request) -> Visit | None:
    """The visit of this request; None without one, and for a cookie that is forged or too old."""
    found = _loaded(settings, "visit", request.cookies.get(COOKIE, ""), VISIT_SECONDS)
    return Visit(*found) if isinstance(found, list) and len(found) == len(Visit.__dataclass_fields__) else None


def open_form(settings: Settings, request: Request, response: Response, token: str) -> None:
    """Remembers in a cookie that this browser was given the sign-in form with this token."""
    _set(request, response, FORM_COOKIE, _signer(settings, "form").dumps(token))


def form_token(settings: Settings, request: Request) -> str | None:
    """The token of the sign-in form that this browser was given."""
    found = _loaded(settings, "form", request.cookies.get(FORM_COOKIE, ""), FORM_SECONDS)
    return found if isinstance(found, str) else None


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def same(one: str, other: str) -> bool:
    """Whether two tokens are the same, compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def _set(request: Request, response: Response, name: str, value: str) -> None:
    response.set_cookie(name, value, path=PATH, secure=_is_secure(request), httponly=True, samesite="strict")


def _is_secure(request: Request) -> bool:
    """Behind a proxy that ends TLS, uvicorn takes the scheme from X-Forwarded-Proto of those it trusts."""
    return request.url.scheme == "https"


def _loaded(settings: Settings, purpose: str, value: str, most_seconds: int) -> Any:  # noqa: ANN401 - JSON
    try:
        return _signer(settings, purpose).loads(value, max_age=most_seconds)
    except BadSignature:
        return None


def _signer(settings: Settings, purpose: str) -> URLSafeTimedSerializer:
    secret = _secret(settings.dashboard_secret, settings.key_pepper)
    return URLSafeTimedSerializer(
        secret, salt=f"compactd-dashboard-{purpose}", signer_kwargs={"digest_method": hashlib.sha256}
    )


@cache
def _secret(given: str, pepper: str) -> str:
    """The operator's secret, else one made from the pepper, else one of this process alone."""
    if given:
        return given
    if pepper:
        return hmac.new(pepper.encode(), b"compactd dashboard cookies", hashlib.sha256).hexdigest()
    _log.warning("dashboard.secret_drawn", advice="COMPACTD_DASHBOARD_SECRET keeps people signed in over restarts")
    return secrets.token_hex(32)
