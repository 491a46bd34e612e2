"""Pages: templates, the headers that every answer of the dashboard has, and errors as pages that say what to do."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api import errors
from api.dashboard import shown
from api.dashboard.viewers import SignInNeeded, Viewer
from compaction import __version__
from compaction.errors import CompactdError, InvalidRequest

HERE = Path(__file__).parent
STATIC = HERE / "static"
SIGN_IN = "/dashboard/sign-in"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NAV = (  # address, words, whether it is about all tenants
    ("/dashboard", "Overview", False),
    ("/dashboard/failures", "Failures", False),
    ("/dashboard/jobs", "Jobs", False),
    ("/dashboard/sessions", "Sessions", False),
    ("/dashboard/breakers", "Breakers", False),
    ("/dashboard/bulk", "Bulk runs", False),
    ("/dashboard/workers", "Workers", True),
    ("/dashboard/audit", "Audit", False),
)


def page(request: Request, template: str, viewer: Viewer | None, status: int = 200, **values: object) -> HTMLResponse:
    """The template as an answer; every page knows who looks, where it is and what the time is."""
    html = (
        _templates()
        .get_template(template)
        .render(
            viewer=viewer,
            nav=[(address, text) for address, text, for_all in NAV if viewer and (viewer.sees_all or not for_all)],
            path=request.url.path,
            query=dict(request.query_params),
            now=datetime.now(UTC),
            **values,
        )
    )
    return HTMLResponse(html, status)


def moved(address: str, **params: object) -> RedirectResponse:
    """Goes on to another page after a form, by GET."""
    return RedirectResponse(linked(address, **params), HTTPStatus.SEE_OTHER)


def linked(address: str, **params: object) -> str:
    """An address with the parameters that have a value."""
    given = {name: value for name, value in params.items() if value not in (None, "", False)}
    return f"{address}?{urlencode(given)}" if given else address


class PageRoute(APIRoute):
    """A route of the dashboard: its errors are pages, and its answers carry HEADERS."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # a coroutine
        """The route's handler, inside."""
        inside = super().get_route_handler()

        async def answered(request: Request) -> Response:
            response = await _caught(request, inside)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answered


async def _caught(request: Request, inside: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        return await inside(request)
    except SignInNeeded:
        return _to_sign_in(request)
    except CompactdError as error:
        status = getattr(error, "status", None) or errors.STATUS.get(error.code, 500)
        return _problem(request, status, error)
    except (RequestValidationError, HTTPException):
        return _problem(request, 422, InvalidRequest("The address has parameters that this page does not know."))
    except Exception as error:  # noqa: BLE001 - the last net, as for the API: whatever it was, a page must follow
        errors.unexpected(request, error)
        return _problem(request, 500, CompactdError("compactd failed. The log has the cause under this request's id."))


def _problem(request: Request, status: int, error: CompactdError) -> Response:
    request.scope.setdefault("state", {})["problem_code"] = error.code
    fields = [f"{name}: {text}" for name, text in getattr(error, "fields", ())]
    facts = {"title": HTTPStatus(status).phrase, "detail": error.message, "fields": fields}
    request_id = request.scope["state"].get("request_id")
    response = page(request, "problem.html", None, status, request_id=request_id, **facts)
    wait_seconds = getattr(error, "retry_after_seconds", None)
    if wait_seconds is not None:
        response.headers["Retry-After"] = str(max(1, round(wait_seconds)))
    return response


def _to_sign_in(request: Request) -> Response:
    here = request.url.path if request.method == "GET" else "/dashboard"
    address = linked(SIGN_IN, next=f"{here}?{request.url.query}" if request.url.query else here)
    if request.headers.get("hx-request"):
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": SIGN_IN})
    return RedirectResponse(address, HTTPStatus.SEE_OTHER)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,  # transcripts are hostile: nothing of them is ever markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names: dict[str, Callable[..., Any]] = {
        "plainly": shown.plainly,
        "number": shown.number,
        "short": shown.short,
        "span": shown.span,
        "moment": shown.moment,
        "clock": shown.clock,
        "ago": shown.ago,
        "money": shown.money,
        "label": shown.label,
        "words": shown.words,
        "quoted": lambda text: quote(str(text), safe=""),
    }
    environment.filters.update(names)
    environment.globals.update(percent=shown.percent, linked=linked, asset=asset, version=__version__)
    return environment


@cache
def asset(name: str) -> str:
    """The address of a static file with a mark of its contents: browsers may keep it for ever."""
    mark = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/dashboard/static/{name}?v={mark}"
