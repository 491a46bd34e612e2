"""Taking a result over: checks that the producer's copy is what the result replaces, records it, finds the tail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from api.bodies import think
from api.found import NO_JOB, NO_SESSION, found, why_no_result
from api.live import belongs, refuse_crowded
from api.schemas.applying import ApplyRequest
from api.services import Services
from compaction.core import jsonbytes, prefixes, wire
from compaction.core.messages import decode_message
from compaction.errors import Conflict, NotFound, Stale
from compaction.store import jobs, results, sessions
from compaction.store.live_views import Replaced
from compaction.store.results import ResultRow
from compaction.store.sessions import StoredMessage

_MOVED = (
    "Your copy is not what this result replaces, so nothing was changed. Go on with your own messages and compact "
    "anew, or start over from GET /v1/sessions/{id}/messages?view=api."
)
_INLINE = (
    "An inline job has no stored session to compare with. Replace the messages that you sent by the result's "
    "api_messages, and put behind them what came later."
)
_REWOUND = (
    "The stored history has gone back behind this result: it speaks of messages that are no more part of the "
    "conversation. Nothing was changed. Compact anew."
)
_LONGER = (
    "Your list begins with what this result replaces and goes on behind it. Send the hash of its first `length` "
    "messages; what was appended later comes back with the answer."
)


async def applied(held: Services, tenant_id: int, job_id: str, wanted: ApplyRequest) -> bytes:
    """The JSON of `api.schemas.applying.Applied`. Raises NotFound without a result, Stale for another history.

    Raises Conflict for an inline job: what its producer said meanwhile is stored nowhere, so it would be lost.
    """
    async with held.database.begin() as conn:
        job = found(await jobs.get(conn, tenant_id, job_id), NO_JOB)
        if job.session_name is None:
            raise Conflict(_INLINE)
        result = await results.get(conn, tenant_id, job_id)
        if result is None:
            raise NotFound(why_no_result(job))
        session = found(await sessions.get(conn, tenant_id, job.session_name), NO_SESSION)
        is_live = session.live_job_id == result.job_id  # else the history may have gone back behind it
        is_same = is_live and wanted.prefix_hash == result.prefix_hash
        replaced = None if is_same else await sessions.load_replaced(conn, result)
    if replaced is not None:
        size = sum(len(stored.body) for stored in replaced.view.messages)
        await think(size, _check, result, replaced, wanted)
    async with held.database.begin() as conn:
        tail = await sessions.load_tail(conn, result.session_id, result.covers_through_seq)
        head_seq = tail[-1].seq if tail else result.covers_through_seq
        applied_at = await results.mark_applied(conn, result, head_seq)
    return await think(sum(len(stored.body) for stored in tail), _document, result, tail, head_seq, applied_at)


def _check(result: ResultRow, replaced: Replaced, wanted: ApplyRequest) -> None:
    """Raises Stale unless the producer holds what the result replaces, in one of the ways to hold it."""
    view = replaced.view
    refuse_crowded(view.messages)
    earlier = () if view.result_body is None else view.result_body.messages
    appended = [decode_message(stored.body, seq=stored.seq) for stored in view.messages]
    given = sum(message.seq is not None and message.seq <= (replaced.applied_through_seq or 0) for message in appended)
    ways = prefixes.copies(earlier, appended, given)
    if ways[0][-1:] != [result.prefix_hash]:
        raise Stale(_REWOUND, changes={"covers_through_seq": result.covers_through_seq})
    if any(hashes and hashes[-1] == wanted.prefix_hash for hashes in ways):
        return
    first = None if wanted.hashes is None else prefixes.difference(ways, wanted.hashes)
    changes = {
        "covers_through_seq": result.covers_through_seq,
        "length": len(ways[0]) if first is None else first.length,
        "first_differing_index": None if first is None else first.index,
    }
    raise Stale(_LONGER if first is not None and first.index == first.length else _MOVED, changes=changes)


def _document(result: ResultRow, tail: Sequence[StoredMessage], head_seq: int, applied_at: datetime) -> bytes:
    refuse_crowded(tail)
    decoded = [decode_message(stored.body, seq=stored.seq) for stored in tail]
    shown = [stored.body for stored, message in zip(tail, decoded, strict=True) if belongs(message)]
    ready = wire.api_messages([*result.body.messages, *decoded])
    return jsonbytes.encode(
        {
            "job_id": result.job_id,
            "session_id": result.session_name,
            "applied_at": applied_at,
            "covers_through_seq": result.covers_through_seq,
            "head_seq": head_seq,
            "messages": [msgspec.Raw(body) for body in shown],
            "api_messages": [msgspec.Raw(jsonbytes.encode(turn)) for turn in ready],
        }
    )
