"""Import: one transcript file as the body becomes a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from api import bodies, errors, imports, openapi
from api.answers import LINES_TYPE, encoded, json_answer
from api.auth import SessionWriter
from api.imports import Import
from api.schemas.fields import Name, SessionId
from api.schemas.messages import Imported
from api.services import Services, services
from compaction.core import jsonbytes

router = APIRouter(tags=["sessions"])

TICK_SECONDS = 0.1  # progress lines come at most this often


@router.post(
    "/v1/sessions/import",
    summary="Import a transcript",
    openapi_extra=openapi.takes_bytes(
        "A transcript: Claude Code JSONL, a list of Messages API messages, or an OpenAI chat"
    ),
    responses={200: openapi.gives(Imported, "Stored"), **openapi.refuses(400, 413, 415)},
)
async def import_transcript(
    request: Request,
    caller: SessionWriter,
    format_name: Annotated[str, Query(alias="format", max_length=50, description="auto, or a format's name")] = "auto",
    session_id: Annotated[SessionId | None, Query(description="Instead of the id in the file")] = None,
    model: Annotated[Name | None, Query(description="Instead of the model in the file")] = None,
) -> Response:
    """Read a transcript and store what is new of it; the report says what was merged and skipped.

    A file that holds anything which cannot be stored stores nothing. It is stored in batches: where the service breaks
    down meanwhile (503), or the caller hangs up, import the file again and the rest is added. Turns that the user went
    back behind since an earlier import leave the live view and stay in the full one.

    With `Accept: application/x-ndjson` the answer is a stream of `{"progress": {done_bytes, total_bytes}}` lines that
    ends with an `{"imported": …}` or `{"problem": …}` line. The body may be packed with `Content-Encoding: gzip`.
    """
    held = services(request)
    file = await bodies.spool(request, held.settings.max_import_bytes)
    wanted = Import(tenant_id=caller.tenant_id, format_name=format_name, session_id=session_id, model=model)
    if LINES_TYPE in request.headers.get("accept", ""):
        return StreamingResponse(_lines(request, held, file, wanted), media_type=LINES_TYPE)
    with file:
        return json_answer(await imports.store(held, file, wanted))


async def _lines(request: Request, held: Services, file: BinaryIO, wanted: Import) -> AsyncIterator[bytes]:
    """Progress lines, then the outcome. A caller that hangs up ends the import; the next one goes on."""
    loop, ticker = asyncio.get_running_loop(), _Ticker()

    def on_progress(done_bytes: int, total_bytes: int) -> None:
        loop.call_soon_threadsafe(ticker.move, done_bytes, total_bytes)

    with file:
        work = asyncio.create_task(imports.store(held, file, wanted, on_progress))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=TICK_SECONDS)
                if (line := ticker.line()) is not None:
                    yield line
            yield _outcome(request, work)
        finally:
            work.cancel()


def _outcome(request: Request, work: asyncio.Task[Imported]) -> bytes:
    error = work.exception()
    if error is None:
        return b'{"imported":' + encoded(work.result()) + b"}\n"
    answer = errors.answer(request, error)
    return b'{"problem":' + bytes(answer.body) + b"}\n"


class _Ticker:
    """The newest progress, told once."""

    def __init__(self) -> None:
        self._newest: dict[str, int] | None = None

    def move(self, done_bytes: int, total_bytes: int) -> None:
        """Takes a new state of the work."""
        self._newest = {"done_bytes": done_bytes, "total_bytes": total_bytes}

    def line(self) -> bytes | None:
        """A line for what is new since the last one."""
        newest, self._newest = self._newest, None
        return None if newest is None else jsonbytes.encode({"progress": newest}) + b"\n"
