"""Looks at jobs: all who are woken in the same moment share one query, however many they are.

A job's end may wake two thousand callers. A query each would keep the last one waiting for seconds; here they are
gathered while the query before them runs, so the crowd costs a handful of queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeVar

from compaction.store import job_crowds
from compaction.store.engine import Database
from compaction.store.job_crowds import Asked
from compaction.store.job_reads import JobEvent
from compaction.store.job_rows import JobRow

Question = TypeVar("Question")
Answer = TypeVar("Answer")

MAX_QUESTIONS = 500  # in one query: a page of Postgres's attention, and far below its limits


class Gathering(Generic[Question, Answer]):
    """Answers questions that come together by one call of `answer`, which may leave out what it knows nothing of."""

    def __init__(self, answer: Callable[[Collection[Question]], Awaitable[Mapping[Question, Answer]]]) -> None:
        self._answer = answer
        self._waiting: dict[Question, asyncio.Future[Answer | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> Answer | None:
        """The answer as of now or later, None when there is none. Raises what the shared call raised."""
        if question not in self._waiting:
            self._waiting[question] = asyncio.get_running_loop().create_future()
        asked = self._waiting[question]
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await asyncio.shield(asked)  # one who goes away must not take the answer from the others

    async def _run(self) -> None:
        while self._waiting:
            batch = {question: self._waiting.pop(question) for question in list(self._waiting)[:MAX_QUESTIONS]}
            try:
                answers = await self._answer(batch.keys())
            except BaseException as error:
                for asked in batch.values():
                    asked.set_exception(error)
                    asked.exception()  # nobody may be left to look at it
                if not isinstance(error, Exception):
                    raise
            else:
                for question, asked in batch.items():
                    asked.set_result(answers.get(question))


class Looks:
    """Reads jobs and their events for those who wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs = Gathering(self._read_jobs)
        self._events = Gathering(self._read_events)

    async def job(self, tenant_id: int, job_id: str) -> JobRow | None:
        """The tenant's job of that id."""
        return await self._jobs.ask((tenant_id, job_id))

    async def events(self, job_id: str, after_id: int) -> list[JobEvent]:
        """What happened to a job that the caller may see, after the event `after_id`."""
        return await self._events.ask((job_id, after_id)) or []

    async def _read_jobs(self, asked: Collection[Asked]) -> Mapping[Asked, JobRow]:
        async with self._database.connect() as conn:
            return await job_crowds.get_many(conn, asked)

    async def _read_events(self, asked: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], list[JobEvent]]:
        places: dict[str, int] = {}
        for job_id, after_id in asked:
            places[job_id] = min(after_id, places.get(job_id, after_id))
        async with self._database.connect() as conn:
            found = await job_crowds.events_after(conn, places)
        return {
            (job_id, after_id): [event for event in found.get(job_id, ()) if event.id > after_id]
            for job_id, after_id in asked
        }
