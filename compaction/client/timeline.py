"""A job's timeline as it happens: server-sent events where they come through, asking again and again where not.

A proxy that buffers, or an older server, turns the stream into something else; then the list is read and the job looked
at every second. Whatever breaks on the way, an entry is given once, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

from compaction.client.errors import Refused, Unreachable
from compaction.client.http import Http, is_passing
from compaction.client.shapes import Event, Job, Page
from compaction.core import jsonbytes

MEDIA_TYPE = "text/event-stream"
POLL_SECONDS = 1.0  # between two looks where there is no stream
MAX_BREAKS = 5  # in a row, without anything new in between
PAGE_SIZE = 200  # the largest that the API gives
_STATES = frozenset({"job", "end"})  # frames that carry the job, not an entry


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a job. `type` is an entry's own (`tengu_compact` …), or `job` or `end`.

    With `job` (state or progress changed) and `end` (the last one), `data` is the job; else the entry's data. `id` is
    what to resume behind; None for `job`.
    """

    type: str
    data: dict[str, Any] = field(repr=False)
    id: str | None = None


@dataclass(slots=True)
class _Frame:
    """A frame while its lines come in."""

    id: str | None = None
    event: str = "message"
    data: list[str] = field(default_factory=list)


class Timeline:
    """The happenings of one job. `last_event_id` is the id of the last one that was given."""

    def __init__(self, http: Http, path: str, last_event_id: str | None = None) -> None:
        self._http = http
        self._path = path
        self.last_event_id = last_event_id
        self._job: object = None  # as it was last told, so that looking again tells it only when it changed

    async def happenings(self) -> AsyncIterator[Happening]:
        """All of them, until the job's end; comes again by itself where the connection breaks.

        Raises Unreachable or Refused when that fails again and again.
        """
        breaks = 0
        while True:
            try:
                async for one in self._attempt():
                    breaks = 0
                    yield one
                    if one.type == "end":
                        return
            except (Unreachable, Refused) as error:
                if breaks == MAX_BREAKS or (isinstance(error, Refused) and not is_passing(error)):
                    raise
            else:
                if self.last_event_id is not None and self.last_event_id.endswith("-end"):
                    return
            breaks += 1
            await asyncio.sleep(POLL_SECONDS * min(breaks, MAX_BREAKS))

    async def _attempt(self) -> AsyncIterator[Happening]:
        headers = {"Accept": MEDIA_TYPE} | ({"Last-Event-ID": self.last_event_id} if self.last_event_id else {})
        async with self._http.stream(self._path + "/events", headers) as answer:
            if answer.status_code == HTTPStatus.NO_CONTENT:
                self.last_event_id = self.last_event_id or "-end"
                return
            if MEDIA_TYPE in answer.headers.get("Content-Type", ""):
                async for frame in _frames(answer.aiter_lines()):
                    yield self._told(frame)
                return
        async for one in self._looks():
            yield one

    def _told(self, frame: _Frame) -> Happening:
        value = jsonbytes.decode("\n".join(frame.data))
        if frame.id is not None:
            self.last_event_id = frame.id
        return Happening(frame.event, value if frame.event in _STATES else value["data"], frame.id)

    async def _looks(self) -> AsyncIterator[Happening]:
        """The list and the job, over and over. Raises like `Http.json`."""
        after = int(self.last_event_id or 0)
        while True:
            job = cast("Job", await self._http.json("GET", self._path))  # before its entries, so that none is missed
            for event in await self._listed():
                if event["id"] > after:
                    after, self.last_event_id = event["id"], str(event["id"])
                    yield Happening(event["type"], event["data"], self.last_event_id)
            if job["done"]:
                yield Happening("end", dict(job), f"{after}-end")
                return
            if job != self._job:
                self._job = job
                yield Happening("job", dict(job))
            await asyncio.sleep(POLL_SECONDS)

    async def _listed(self) -> list[Event]:
        events: list[Event] = []
        cursor: str | None = None
        while True:
            query = {"limit": PAGE_SIZE, "cursor": cursor}
            page = cast("Page[Event]", await self._http.json("GET", self._path + "/events", query=query))
            events += page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return events


async def _frames(lines: AsyncIterable[str]) -> AsyncIterator[_Frame]:
    """The frames of an event stream (WHATWG HTML, 9.2.6). Comments and pauses say nothing; half a frame is none."""
    frame = _Frame()
    async for line in lines:
        if not line:
            if frame.data:
                yield frame
            frame = _Frame()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            frame.data.append(value)
        elif name == "event":
            frame.event = value
        elif name == "id":
            frame.id = value
