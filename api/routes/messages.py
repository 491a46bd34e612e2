"""A session's messages: append a batch, read them in one of three views."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from api import bodies, openapi
from api.answers import json_answer, list_of
from api.auth import Reader, SessionWriter
from api.found import NO_SESSION, found
from api.idempotency import IdempotencyKey, once
from api.intake import append_batch
from api.live import api_bodies, chat_bodies, live_bodies, size_bytes
from api.schemas.fields import SessionPath
from api.schemas.messages import Appended, AppendRequest, ChatPage, MessagePage, MessageQuery
from api.services import Services, services
from compaction.errors import InvalidRequest
from compaction.store import cursors, sessions
from compaction.store.sessions import SessionRow

router = APIRouter(tags=["messages"])

CHUNK_MESSAGES = 200  # read and sent at a time: the answer's memory does not grow with the session
_EXAMPLE = {
    "messages": [
        {"uuid": "m1", "role": "user", "content": "Please make the tests pass."},
        {"uuid": "m2", "role": "assistant", "content": [{"type": "text", "text": "I begin with the failing one."}]},
    ],
    "expected_seq": 0,
}


@router.post(
    "/v1/sessions/{session_id}/messages",
    summary="Append messages",
    openapi_extra=openapi.takes(AppendRequest, _EXAMPLE),
    responses={200: openapi.gives(Appended, "Stored"), **openapi.refuses(400, 404, 409, 413, 415)},
)
async def append_messages(
    request: Request, caller: SessionWriter, session_id: SessionPath, key: IdempotencyKey
) -> Response:
    """Store a batch, all or nothing, each message as the bytes it came as.

    A uuid that is stored already is passed over (sending a batch twice is safe); a partial message is replaced by the
    final one of its uuid. With `expected_seq` the batch is refused (409) unless it continues exactly there.
    Messages without uuids are safe to send again under an `Idempotency-Key`: it gives the first answer once more.
    """
    held = services(request)
    body = await bodies.read(request, held.settings.max_body_bytes)
    batch = await bodies.think(len(body), append_batch, body)
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            return work.replay
        row = found(await sessions.get(work.conn, caller.tenant_id, session_id, to_append=True), NO_SESSION)
        done = await sessions.append(work.conn, row.id, batch.messages, expected_seq=batch.expected_seq, locked=row)
        shown = Appended(
            session_id=session_id,
            head_seq=done.head_seq,
            appended=done.appended,
            duplicates=done.duplicates,
            replaced=done.replaced,
        )
        return await work.keep(json_answer(shown))


@router.get(
    "/v1/sessions/{session_id}/messages",
    summary="Read messages",
    responses={
        200: openapi.gives_one_of("The messages, oldest first", anthropic=MessagePage, openai=ChatPage),
        **openapi.refuses(404, 413),
    },
)
async def get_messages(
    request: Request, caller: Reader, session_id: SessionPath, query: Annotated[MessageQuery, Query()]
) -> Response:
    """`live`: what the agent goes on with; `api`: the same, ready to send; `full`: all that was ever stored.

    `format=openai` gives `view=api` as a chat completion takes it (docs/formats.md).
    """
    held = services(request)
    if query.format == "openai" and query.view != "api":
        raise InvalidRequest("format belongs to view=api.", fields=(("format", "not with this view"),))
    if query.view == "full":
        return await _full(held, caller.tenant_id, session_id, query.limit, query.cursor)
    if query.limit is not None or query.cursor is not None:
        raise InvalidRequest("limit and cursor belong to view=full.", fields=(("limit", "not with this view"),))
    async with held.database.begin() as conn:
        row = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        live = await sessions.load_live(conn, row.id)
        parameters = await sessions.load_parameters(conn, row.id) if query.format == "openai" else {}
    if query.format == "openai":
        return json_answer(list_of(await bodies.think(size_bytes(live), chat_bodies, live, parameters.get("system"))))
    written = await bodies.think(size_bytes(live), api_bodies if query.view == "api" else live_bodies, live)
    return json_answer(list_of(written))


async def _full(held: Services, tenant_id: int, session_id: str, limit: int | None, cursor: str | None) -> Response:
    after_seq = cursors.decode_number(cursor) or 0
    async with held.database.connect() as conn:
        row = found(await sessions.get(conn, tenant_id, session_id), NO_SESSION)
    return StreamingResponse(_stream(held, row, after_seq, limit), media_type="application/json")


async def _stream(held: Services, row: SessionRow, after_seq: int, limit: int | None) -> AsyncIterator[bytes]:
    """The list through the head that was found, in chunks; no connection is held while the caller takes its time."""
    yield b'{"data":['
    separator, left = b"", row.head_seq if limit is None else limit
    while left > 0 and after_seq < row.head_seq:
        async with held.database.connect() as conn:
            rows = await sessions.load_full(conn, row.id, after_seq=after_seq, limit=min(CHUNK_MESSAGES, left))
        rows = [stored for stored in rows if stored.seq <= row.head_seq]
        if not rows:
            break
        yield separator + b",".join(stored.body for stored in rows)
        separator, left, after_seq = b",", left - len(rows), rows[-1].seq
    else:
        if after_seq < row.head_seq:
            yield f'],"next_cursor":"{cursors.encode_number(after_seq)}","has_more":true}}'.encode()
            return
    yield b'],"next_cursor":null,"has_more":false}'
