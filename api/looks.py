"""Looks at jobs: all who are woken in the same moment share one query, however many they are.

A job's end may wake two thousand callers. A query each would keep the last one waiting for seconds; here they are
gathered while the query before them runs, so the crowd costs a handful of queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from api.answers import encoded
from api.schemas.compactions import Job
from api.standstills import Standstills
from compaction.core.jsonbytes import Json
from compaction.store import job_crowds
from compaction.store.engine import Database
from compaction.store.job_reads import JobEvent
from compaction.store.job_rows import JobRow

Question = TypeVar("Question")
Answer = TypeVar("Answer")

Place = tuple[int, str, int | None]  # a tenant, its job, and the last event that was seen; None: no events
Timeline = tuple["Seen", list[JobEvent]]

MAX_QUESTIONS = 500  # in one query: a page of Postgres's attention, and far below its limits


class Gathering(Generic[Question, Answer]):
    """Answers questions that come together by one call of `answer`, which may leave out what it knows nothing of."""

    def __init__(self, answer: Callable[[Collection[Question]], Awaitable[Mapping[Question, Answer]]]) -> None:
        self._answer = answer
        self._waiting: dict[Question, list[asyncio.Future[Answer | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> Answer | None:
        """The answer as of now or later, None when there is none. Raises what the shared call raised."""
        asked: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(question, []).append(asked)  # one each: who goes away takes nobody's answer along
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await asked

    async def _run(self) -> None:
        while self._waiting:
            batch = {question: self._waiting.pop(question) for question in list(self._waiting)[:MAX_QUESTIONS]}
            try:
                answers = await self._answer(batch.keys())
            except BaseException as error:
                for asked in _still_there(batch.values()):
                    asked.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                for question, crowd in batch.items():
                    answer = answers.get(question)
                    for asked in _still_there([crowd]):
                        asked.set_result(answer)


def _still_there(crowds: Iterable[list[asyncio.Future[Answer | None]]]) -> Iterator[asyncio.Future[Answer | None]]:
    """Those who have not gone away meanwhile."""
    return (asked for crowd in crowds for asked in crowd if not asked.done())


class Seen:
    """A job as it was found, for everybody who asked together: its document is written once."""

    __slots__ = ("_document", "progress", "row")

    def __init__(self, row: JobRow, progress: dict[str, Json]) -> None:
        self.row = row
        self.progress = progress  # the row's own, or what is known beside it
        self._document: bytes | None = None

    @property
    def document(self) -> bytes:
        """The JSON of `api.schemas.compactions.Job`."""
        if self._document is None:
            self._document = encoded(Job.of(self.row, self.progress))
        return self._document


class Looks:
    """Reads jobs and their events for those who wait: both kinds together, or those who ask for less would go first."""

    def __init__(self, database: Database, standstills: Standstills) -> None:
        self._database = database
        self._standstills = standstills
        self._gathering = Gathering(self._read)

    async def job(self, tenant_id: int, job_id: str) -> Seen | None:
        """The tenant's job of that id."""
        found = await self._gathering.ask((tenant_id, job_id, None))
        return None if found is None else found[0]

    async def timeline(self, tenant_id: int, job_id: str, after_id: int) -> Timeline | None:
        """The tenant's job, and what happened to it after the event `after_id`. An end that is seen has its events."""
        return await self._gathering.ask((tenant_id, job_id, after_id))

    async def _read(self, asked: Collection[Place]) -> Mapping[Place, Timeline]:
        async with self._database.connect() as conn:
            rows = await job_crowds.get_many(conn, {(tenant_id, job_id) for tenant_id, job_id, _ in asked})
            places: dict[str, int] = {}
            for tenant_id, job_id, after_id in asked:
                if after_id is not None and (tenant_id, job_id) in rows:
                    places[job_id] = min(after_id, places.get(job_id, after_id))
            events = await job_crowds.events_after(conn, places)
        seen = {one: Seen(row, await self._standstills.progress(row)) for one, row in rows.items()}
        return {place: (seen[place[:2]], _after(events, place)) for place in asked if place[:2] in seen}


def _after(events: Mapping[str, list[JobEvent]], place: Place) -> list[JobEvent]:
    """Those of the job's events that this caller has not seen."""
    _, job_id, after_id = place
    return [] if after_id is None else [event for event in events.get(job_id.lower(), ()) if event.id > after_id]
