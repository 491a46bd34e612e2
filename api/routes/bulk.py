"""Bulk runs: plan, look, pause, resume, cancel; the results of the sessions line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from api import bodies, bulk_gathering, openapi
from api.answers import fresh_answer, json_answer, page
from api.auth import JobWriter, Reader
from api.bulk_lines import line
from api.bulk_page import bulk_page
from api.found import found
from api.idempotency import IdempotencyKey, once
from api.schemas.bulk import BulkPage, BulkRequest, BulkRun
from api.schemas.bulk_report import BulkFigures
from api.schemas.fields import PageQuery
from api.services import Services, services
from compaction.errors import Conflict
from compaction.store import bulk_runs, bulk_totals
from compaction.store.bulk_runs import NewRun, RunRow
from compaction.store.engine import Connection

router = APIRouter(tags=["bulk"])

LINES_TYPE = "application/x-ndjson"
PAGE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}  # it loads nothing
NO_RUN = "There is no bulk run of this id. GET /v1/bulk lists the runs of this key's tenant."
RunPath = Annotated[str, Path(description="The run's id, as the 202 gave it", max_length=100)]
_EXAMPLE = {"selection": {"id_prefix": "archive-2026"}, "dry_run": True, "max_usd": 25.0}
_NEXT = openapi.leads_to("bulk_id", "id", "get_bulk", "get_bulk_results", "pause_bulk", "resume_bulk", "cancel_bulk")
_LINE = '{"custom_id":"item-7","session_id":"agent-7:2026-11-30","result":{"type":"succeeded"}}\n'


@router.post(
    "/v1/bulk",
    status_code=202,
    summary="Compact many sessions anew",
    openapi_extra=openapi.takes(BulkRequest, _EXAMPLE),
    responses={
        202: openapi.gives(BulkRun, "Stored; a worker plans it now") | _NEXT,
        **openapi.refuses(400, 409, 413, 415),
    },
)
async def create_bulk(request: Request, caller: JobWriter, key: IdempotencyKey) -> Response:
    """Plan a run over stored sessions, and carry it out unless it is a dry run.

    Each session is compacted from what its producer stored, however often it was compacted before. A session that the
    same order compacted already is skipped (`unchanged`), so that asking again costs nothing. Follow the run with
    GET /v1/bulk/{id}; its messages are never deleted or changed.
    """
    held = services(request)
    body = await bodies.read(request, held.settings.max_body_bytes)
    wanted = await bodies.parse(body, BulkRequest)
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            return work.replay
        row = await bulk_runs.create(work.conn, _new_run(caller.tenant_id, wanted))
        document = await _document(work.conn, row)
        answer = await work.keep(json_answer(document, 202, headers={"Location": f"/v1/bulk/{row.id}"}))
    held.rings.wake()
    return answer


@router.get(
    "/v1/bulk",
    summary="List bulk runs",
    responses={200: openapi.gives(BulkPage, "Runs, newest first"), **openapi.refuses()},
)
async def list_bulk(request: Request, caller: Reader, query: Annotated[PageQuery, Query()]) -> Response:
    """The runs of the key's tenant."""
    async with services(request).database.connect() as conn:
        rows, following = await bulk_runs.list_runs(conn, caller.tenant_id, limit=query.limit, cursor=query.cursor)
        sums = await bulk_totals.totals(conn, [row.id for row in rows])
    return page([BulkRun.of(row, sums[row.id]) for row in rows], following)


@router.get(
    "/v1/bulk/{bulk_id}",
    summary="A bulk run: its plan and how far it has come",
    responses={200: openapi.gives(BulkRun, "The run"), 304: openapi.UNCHANGED, **openapi.refuses(404)},
)
async def get_bulk(request: Request, caller: Reader, bulk_id: RunPath) -> Response:
    """Sessions, tokens and money: found, done and left."""
    async with services(request).database.connect() as conn:
        document = await _document(conn, found(await bulk_runs.get(conn, caller.tenant_id, bulk_id), NO_RUN))
    return fresh_answer(request, document)


@router.get(
    "/v1/bulk/{bulk_id}/results",
    summary="The sessions of a bulk run, one per line",
    response_class=StreamingResponse,  # it has no JSON of its own in the document
    responses={
        200: {
            "description": "JSON lines in the order of the plan, as the Message Batches API writes them",
            "content": {LINES_TYPE: {"schema": {"type": "string"}, "example": _LINE}},
        },
        **openapi.refuses(404),
    },
)
async def get_bulk_results(request: Request, caller: Reader, bulk_id: RunPath) -> Response:
    """Each session with `custom_id`, `session_id` and its `result`.

    The result's type is processing, succeeded (with the job whose result it is), errored, canceled, expired or skipped.
    """
    held = services(request)
    async with held.database.connect() as conn:
        row = found(await bulk_runs.get(conn, caller.tenant_id, bulk_id), NO_RUN)
    return StreamingResponse(_lines(held, row.id), media_type=LINES_TYPE)


@router.get(
    "/v1/bulk/{bulk_id}/report",
    summary="What a bulk run did, in figures or as a page",
    responses={
        200: openapi.gives(BulkFigures, "The figures; with Accept: text/html a page with charts, without scripts")
        | {"content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>"}}},
        **openapi.refuses(404),
    },
)
async def get_bulk_report(request: Request, caller: Reader, bulk_id: RunPath) -> Response:
    """Sizes before and after, ratios by strategy, failures by cause, cost, the slowest, the biggest losses."""
    held = services(request)
    async with held.database.connect() as conn:
        row = found(await bulk_runs.get(conn, caller.tenant_id, bulk_id), NO_RUN)
    report = await bulk_gathering.report(held, row)
    if "text/html" in request.headers.get("accept", ""):
        return Response(bulk_page(row, report), media_type="text/html", headers=PAGE_HEADERS)
    return json_answer(BulkFigures.of(row.id, report))


@router.post(
    "/v1/bulk/{bulk_id}/pause",
    summary="Pause a bulk run",
    responses={200: openapi.gives(BulkRun, "No further session begins"), **openapi.refuses(404, 409)},
)
async def pause_bulk(request: Request, caller: JobWriter, bulk_id: RunPath) -> Response:
    """Begin no further session; those under way are finished. Asking again changes nothing."""
    async with services(request).database.begin() as conn:
        row = found(await bulk_runs.pause(conn, caller.tenant_id, bulk_id), NO_RUN)
        if row.state != "paused":
            raise Conflict(f"The run is {row.state}; only one that is planning or running can be paused.")
        document = await _document(conn, row)
    return json_answer(document)


@router.post(
    "/v1/bulk/{bulk_id}/resume",
    summary="Go on with a bulk run",
    responses={200: openapi.gives(BulkRun, "It goes on"), **openapi.refuses(404, 409)},
)
async def resume_bulk(request: Request, caller: JobWriter, bulk_id: RunPath) -> Response:
    """Go on after a pause, carry out the plan of a dry run, or do the rest after a sample."""
    held = services(request)
    async with held.database.begin() as conn:
        row = found(await bulk_runs.resume(conn, caller.tenant_id, bulk_id), NO_RUN)
        if row.state not in {"planning", "running"}:
            raise Conflict(f"The run is {row.state}; nothing waits in it. POST /v1/bulk makes a new one.")
        document = await _document(conn, row)
    held.rings.wake()
    return json_answer(document)


@router.post(
    "/v1/bulk/{bulk_id}/cancel",
    summary="Cancel a bulk run",
    responses={
        200: openapi.gives(BulkRun, "Ended before"),
        202: openapi.gives(BulkRun, "It ends as soon as its jobs have"),
        **openapi.refuses(404),
    },
)
async def cancel_bulk(request: Request, caller: JobWriter, bulk_id: RunPath) -> Response:
    """Begin no further session and cancel the run's own jobs. Results that are there stay."""
    held = services(request)
    async with held.database.begin() as conn:
        row = found(await bulk_runs.cancel(conn, caller.tenant_id, bulk_id), NO_RUN)
        document = await _document(conn, row)
    held.rings.wake()
    return json_answer(document, 200 if document.done else 202)


async def _document(conn: Connection, row: RunRow) -> BulkRun:
    return BulkRun.of(row, (await bulk_totals.totals(conn, [row.id]))[row.id])


async def _lines(held: Services, run_id: str) -> AsyncIterator[bytes]:
    async for item in bulk_gathering.items(held, run_id):
        yield line(item)


def _new_run(tenant_id: int, wanted: BulkRequest) -> NewRun:
    chosen = {name: value for name, value in asdict(wanted.selection.chosen()).items() if value is not None}
    return NewRun(
        tenant_id=tenant_id,
        selection=chosen,
        way=wanted.way,
        dry_run=wanted.dry_run,
        model=wanted.model,
        strategy=wanted.strategy,
        instructions=wanted.instructions,
        force=wanted.force,
        sample=wanted.sample,
        max_usd=wanted.limit_usd,
        max_tokens=wanted.max_tokens,
    )
