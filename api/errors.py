"""Errors as HTTP: the one table from code to status, and RFC 9457 problem documents for everything that goes wrong.

A problem never quotes what was sent: it names the place (`messages[3].content`) and says what must stand there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from compaction import telemetry
from compaction.core import jsonbytes
from compaction.errors import CompactdError, InvalidRequest

PROBLEM_TYPE = "application/problem+json"
STATUS: dict[str, int] = {
    "invalid_request": 422,
    "not_found": 404,
    "unauthorized": 401,
    "forbidden": 403,
    "conflict": 409,
    "stale": 409,
    "too_large": 413,
    "idempotency_mismatch": 422,
    "rate_limited": 429,
    "unavailable": 503,
    "internal": 500,
}
# The framework's own refusals have a status and no code of ours.
CODES: dict[int, str] = {401: "unauthorized", 403: "forbidden", 404: "not_found", 413: "too_large", 429: "rate_limited"}
MAX_FIELDS = 20  # wrong fields told at once; a body with more is wrong as a whole
MAX_NAME_CHARS = 80  # of a field's name that the caller made up

_log = telemetry.logger("api")


class Malformed(InvalidRequest):
    """The body is not what its headers say. Send JSON as UTF-8."""

    status = 400


class UnsupportedMediaType(InvalidRequest):
    """Send the body as `Content-Type: application/json`."""

    status = 415


Fields = Iterable[tuple[str, str]]


def problem(  # noqa: PLR0913 - the members of RFC 9457 and ours
    request: Request,
    status: int,
    code: str,
    detail: str,
    *,
    fields: Fields = (),
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document: {type, title, status, code, detail, request_id, errors?}; 401 also says how to log in.

    `members` are those of one code alone.
    """
    document: dict[str, Any] = {
        "type": f"urn:compactd:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request.scope.get("state", {}).get("request_id"),
        **(members or {}),
    }
    errors = [{"path": path, "problem": text} for path, text in fields]
    if errors:
        document["errors"] = errors[:MAX_FIELDS]
    extra = dict(headers or {})
    if status == HTTPStatus.UNAUTHORIZED:
        extra.setdefault("WWW-Authenticate", "Bearer")
    request.scope.setdefault("state", {})["problem_code"] = code
    return Response(jsonbytes.encode(document), status, headers=extra, media_type=PROBLEM_TYPE)


def install(app: FastAPI, routes: Iterable[BaseRoute]) -> None:
    """Makes every failure of `app`, which has these routes, a problem document."""
    app.state.routes = [route for route in routes if isinstance(route, Route)]
    app.add_exception_handler(CompactdError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(ClientDisconnect, _gone)


def answer(request: Request, error: BaseException) -> Response:
    """The problem for any error that a route's work ended with."""
    return _ours(request, error) if isinstance(error, CompactdError) else unexpected(request, error)


def unexpected(request: Request, error: BaseException) -> Response:
    """The answer to a failure that nobody foresaw: logged by type and place, told without any detail."""
    _log.error("request.failed", **telemetry.failure(error))
    return problem(request, 500, "internal", "compactd failed. The log holds the cause under this request_id.")


def invalid(error: ValidationError) -> InvalidRequest:
    """A request's shape error as ours: paths and rules, no values."""
    return InvalidRequest("The body has wrong fields; see `errors`.", fields=tuple(_fields(error.errors(), skip=0)))


def _ours(request: Request, error: BaseException) -> Response:
    assert isinstance(error, CompactdError)  # noqa: S101 - installed for this class alone
    status = getattr(error, "status", None) or STATUS.get(error.code, 500)
    headers = {}
    wait_seconds = getattr(error, "retry_after_seconds", None)
    if wait_seconds is not None:
        headers["Retry-After"] = str(max(1, round(wait_seconds)))
    return problem(
        request,
        status,
        error.code,
        error.message,
        fields=getattr(error, "fields", ()),
        members=getattr(error, "members", None),
        headers=headers,
    )


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - installed for this class alone
    fields = list(_fields(error.errors(), skip=1))
    return problem(request, 422, "invalid_request", "The request has wrong parameters; see `errors`.", fields=fields)


def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - installed for this class alone
    detail = {
        404: "There is no such address. The document at /openapi.json lists all of them.",
        405: "This address does not take this method; see the Allow header.",
    }.get(error.status_code, "The request cannot be carried out.")
    fallback = "invalid_request" if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else "internal"
    code = CODES.get(error.status_code, fallback)
    headers = {**(error.headers or {}), **_allowed(request, error.status_code)}
    return problem(request, error.status_code, code, detail, headers=headers)


def _allowed(request: Request, status: int) -> dict[str, str]:
    """The methods of all routes of this address: the router itself tells those of the first one alone."""
    if status != HTTPStatus.METHOD_NOT_ALLOWED:
        return {}
    found: set[str] = set()
    for route in request.app.state.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods
    return {"Allow": ", ".join(sorted(found))} if found else {}


def _gone(request: Request, error: Exception) -> Response:
    del error  # the caller hung up while sending: nothing was changed and nobody reads this
    return problem(request, 400, "invalid_request", "The connection ended before the body did.")


def _fields(errors: Iterable[Mapping[str, Any]], *, skip: int) -> Iterable[tuple[str, str]]:
    for item in errors:
        location = item["loc"][skip:] or item["loc"]
        text = "unknown field" if item["type"] == "extra_forbidden" else str(item["msg"])
        yield _path(location), text.removeprefix("Value error, ")


def _path(location: Iterable[int | str]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{printable(part)}"
    return path.removeprefix(".") or "body"


def printable(name: str) -> str:
    """A name that the caller made up, as an answer may repeat it: short, and nothing that steers a terminal."""
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)
    return text if len(text) <= MAX_NAME_CHARS else text[:MAX_NAME_CHARS] + "…"
