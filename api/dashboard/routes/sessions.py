"""Sessions: the newest ones, and one with what fills its window, its jobs, its breaker and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api import bodies
from api.dashboard import reading
from api.dashboard.message_view import MessageView
from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.found import NO_SESSION, found
from api.live import live_messages, size_bytes
from api.services import services
from api.session_view import session_view
from compaction.core import jsonbytes
from compaction.core.analysis import Analysis, analyse
from compaction.core.messages import decode_message
from compaction.core.tool_table import tool_table
from compaction.limits import session_limits
from compaction.store import audit, breakers, job_search, reach, session_search, sessions
from compaction.store.engine import Connection
from compaction.store.histories import StoredMessage
from compaction.store.job_search import JobFilter
from compaction.store.reach import Owner, Reach
from compaction.store.sessions import LiveView, SessionRow

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE = 50
MESSAGES = 30  # of one page; a session has thousands
JOBS = 20  # the newest ones of the session
ANALYSED_BYTES = 16 * 2**20  # analysed without being asked: a tenth of a second; larger ones by a click


@router.get("/dashboard/sessions")
async def session_list(request: Request, viewer: Looking) -> Response:
    """Sessions, newest first, or those of one name."""
    name = request.query_params.get("name", "").strip() or None
    cursor = request.query_params.get("cursor") or None
    async with services(request).database.connect() as conn:
        listed, following = await session_search.list_sessions(conn, viewer.reach, name=name, limit=PAGE, cursor=cursor)
    return page(request, "sessions.html", viewer, listed=listed, cursor=following, name=name or "")


@router.get("/dashboard/session")
async def session_page(  # noqa: PLR0913, PLR0917 - the parameters of the address
    request: Request,
    viewer: Looking,
    name: Annotated[str, Query(max_length=200)],
    tenant: Annotated[str, Query(max_length=200)] = "",
    view: Annotated[Literal["live", "full"], Query()] = "live",
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    analyse_anyway: Annotated[bool, Query(alias="analyse")] = False,  # noqa: FBT002 - a flag of the address
) -> Response:
    """One session."""
    held = services(request)
    async with held.database.connect() as conn:
        tenant = tenant or viewer.principal.tenant
        owner = found(await reach.owner_of_session(conn, viewer.reach, tenant, name), NO_SESSION)
        known = await sessions.get(conn, owner.tenant_id, name)
        row = found(None if known is None or known.is_ephemeral else known, NO_SESSION)  # an inline job's has no page
        live = await sessions.load_live(conn, row.id)
        parameters = await sessions.load_parameters(conn, row.id)
        breaker = await breakers.get(conn, row.id)
        beside = await _beside(conn, owner, row)
        full = await sessions.load_full(conn, row.id, after_seq=after, limit=MESSAGES + 1) if view == "full" else []
        if viewer.reads_words:
            await reading.noted(conn, viewer, owner, f"session {name}")
    size = size_bytes(live) + sum(map(len, parameters.values()))
    is_analysed = size <= ANALYSED_BYTES or analyse_anyway
    shown, following = await bodies.think(size, _messages, view, live, full, after)
    facts: dict[str, Any] = beside | {
        "session": row,
        "owner": owner,
        "breaker": breaker,
        "analysis": await bodies.think(size, _analysis, row, live, parameters) if is_analysed else None,
        "fullness": await session_view(row, live, parameters, breaker, held.settings) if is_analysed else None,
        "size_bytes": size,
        "messages": shown,
        "view": view,
        "after": after,
        "following": following,
        "note": request.query_params.get("note"),
    }
    return page(request, "session.html", viewer, **facts)


async def _beside(conn: Connection, owner: Owner, row: SessionRow) -> dict[str, Any]:
    """What is told beside the messages: jobs, results, and who touched the breaker."""
    within = Reach(owner.tenant_id)
    return {
        "jobs": (await job_search.search(conn, within, JobFilter(session=row.name), limit=JOBS)).jobs,
        "results": await session_search.list_applied(conn, owner.tenant_id, row.id, JOBS),
        "deeds": (await audit.list_entries(conn, within, target=row.name, limit=JOBS))[0],
    }


def _analysis(row: SessionRow, live: LiveView, parameters: Mapping[str, bytes]) -> Analysis:
    values = {name: jsonbytes.decode(raw) for name, raw in parameters.items()}
    return analyse(
        live_messages(live),
        system=values.get("system"),
        tools=values.get("tools"),
        window=session_limits(row.model, row.settings).context_window_tokens,
        table=tool_table(row.settings),
    )


def _messages(
    view: str, live: LiveView, full: Sequence[StoredMessage], after: int
) -> tuple[list[MessageView], int | None]:
    """The messages of this page, and where the next one begins: behind a seq of the full view, a place of the live."""
    if view == "full":
        shown = [decode_message(one.body, seq=one.seq) for one in full[:MESSAGES]]
        following = full[MESSAGES - 1].seq if len(full) > MESSAGES else None
    else:
        everything = live_messages(live)
        shown = list(everything[after : after + MESSAGES])
        following = after + MESSAGES if len(everything) > after + MESSAGES else None
    return list(map(MessageView.of, shown)), following
