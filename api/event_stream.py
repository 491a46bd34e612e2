"""A job's timeline as server-sent events: what has happened, what happens, and the job itself at its end.

Frames: one per stored event (its type, its id, the same JSON as in the list), `job` without an id whenever the job's
state or progress has changed, and `end` with the finished job, after which the stream closes. The id of `end` is that
of the last event and a mark, so a browser that comes again after it is told that nothing follows.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header

from api.answers import encoded
from api.schemas.compactions import Event
from api.services import Services
from compaction.errors import InvalidRequest
from compaction.store.job_rows import JobRow

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0  # below the 30 to 60 s after which proxies close a silent connection
RECONNECT_MS = 1_000  # what a browser waits before it comes again
MAX_STREAM_SECONDS = 3600.0  # then the caller comes again with Last-Event-ID, and its key is checked anew
END_MARK = "-end"
_NUMBER = re.compile(r"[0-9]{1,19}")  # what a bigint may have
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would keep the events back
EXAMPLE = """retry: 1000

id: 4711
event: tengu_compact
data: {"id":4711,"at":"2026-11-30T20:30:21.408Z","type":"tengu_compact","data":{"pre_tokens":170896}}

id: 4711-end
event: end
data: {"id":"01a22e26-5941-7380-aaa5-3156a0f6644b","status":"succeeded","done":true}

"""

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="For event streams: the id of the last event seen")
]


def resumed(last_event_id: str | None) -> tuple[int, bool]:
    """The event that the caller saw last, 0 for none, and whether that was the end. Raises InvalidRequest."""
    if not last_event_id:
        return 0, False
    number = last_event_id.removesuffix(END_MARK)
    if not (_NUMBER.fullmatch(number) and int(number) < 2**63):
        raise InvalidRequest("The Last-Event-ID is not one of ours.", fields=(("Last-Event-ID", "is not one of ours"),))
    return int(number), number != last_event_id


async def frames(
    held: Services, row: JobRow, after_id: int, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[bytes]:
    """The stream for a job that was found; no database connection is held while it waits."""
    until = time.monotonic() + MAX_STREAM_SECONDS
    yield b"retry: %d\n\n" % RECONNECT_MS
    shown: tuple[object, ...] | None = None
    with held.listener.watch(row.id) as watch:  # listens before the first look: nothing in between is missed
        while True:
            found = await held.looks.timeline(row.tenant_id, row.id, after_id)
            if found is None:
                return  # retention took it away
            seen, events = found
            for event in events:
                after_id = event.id
                shape = Event(id=event.id, at=event.at, type=event.type, data=event.data)
                yield frame(event.type, encoded(shape), str(event.id))
            now = seen.row
            if now.done:
                yield frame("end", seen.document, f"{after_id}{END_MARK}")
                return
            state = (now.status, seen.progress, now.attempt, now.coalesced, now.not_before)
            if state != shown:
                yield frame("job", seen.document)
            elif not events:
                yield b": still here\n\n"
            shown = state
            if held.stopping.is_set() or time.monotonic() >= until:
                return
            await watch.wait(heartbeat_seconds)


def frame(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """One event. `data` is JSON as our encoders write it: in one line."""
    mark = "" if event_id is None else f"id: {event_id}\n"
    return f"{mark}event: {name}\ndata: ".encode() + data + b"\n\n"
