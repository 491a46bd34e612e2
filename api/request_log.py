"""Around every request: its id, its span, one log line, and the last net for failures nobody foresaw.

Plain ASGI: Starlette's own wrapper would buffer streams and start a task per request.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import errors, metrics
from compaction import telemetry, tracing

REQUEST_ID = "X-Request-Id"
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})  # asked every few seconds; a line each would bury the others
_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")  # what we echo into headers and logs; anything else gets a new id

_log = telemetry.logger("api")


class RequestLog:
    """Gives the request an id (the caller's, when it is a safe one), echoes it and writes one line when it is done."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; other kinds of traffic pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if _SAFE_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id)
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            request_span(scope, answer, headers.get("traceparent")) as traceparent,
            telemetry.traced(traceparent),
        ):
            await self._run(scope, receive, answer)
            # Behind the answers that are ready by now: of two thousand callers who are woken together, each would
            # wait for the lines of those before him.
            asyncio.get_running_loop().call_soon(_note, scope, answer.status, time.monotonic() - started)

    async def _run(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # the last net: whatever got here must still be an answer
            if answer.status is not None:  # too late for a problem; a cut stream tells the caller
                _log.error("request.broken_off", **telemetry.failure(error))
                raise
            request = Request(scope)
            await errors.unexpected(request, error)(scope, receive, answer.send)


@contextmanager
def request_span(scope: Scope, answer: _Answer, given: str | None) -> Iterator[str | None]:
    """The span around a request that is no probe: its own trace context, or the caller's where nothing is recorded."""
    if scope["path"] in PROBES:
        yield given
        return
    with tracing.span("request", "server", {}, traceparent=given) as opened:
        yield tracing.current_traceparent() or given
        facts = _facts(scope)
        method = facts["method"] if facts["method"] in metrics.METHODS else "_OTHER"
        opened.name(f"{method} {facts['route']}")
        opened.tell(
            {
                "http.request.method": str(method),
                "http.route": str(facts["route"]),
                "http.response.status_code": answer.status,
                "compactd.request_id": str(scope["state"]["request_id"]),
                "compactd.key": None if facts["key"] is None else str(facts["key"]),
                "compactd.problem_code": None if facts["code"] is None else str(facts["code"]),
            }
        )
        if answer.status is None or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            opened.failed(str(facts["code"] or "broken_off"))


class _Answer:
    """Passes an answer on, with the request's id in its headers, and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID] = self._request_id
        await self._send(message)


def _note(scope: Scope, status: int | None, seconds: float) -> None:
    """Counts the request and writes its line, in the context of its id."""
    facts = _facts(scope) | {"status": status, "seconds": round(seconds, 4)}
    metrics.answered(str(facts["method"]), str(facts["route"]), status, seconds)
    quiet = facts["route"] in PROBES and status == HTTPStatus.OK
    (_log.debug if quiet else _log.info)("request", **facts)


def _facts(scope: Scope) -> dict[str, object]:
    """What the log may say of a request: the route rather than the path, because a path holds the caller's words."""
    route = scope.get("route")
    state = scope.get("state", {})
    return {
        "method": scope["method"],
        "route": getattr(route, "path", "unknown"),
        "key": state.get("key_id"),
        "code": state.get("problem_code"),
    }
