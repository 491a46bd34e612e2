"""Looks: those who ask together are answered together, each with his own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import httpx2
import pytest
from fastapi import FastAPI

from api.looks import MAX_QUESTIONS, Gathering, Looks
from api.standstills import Standstills
from compaction.errors import Unavailable
from compaction.store import jobs
from tests.integration.api import stage
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio


class Answering:
    """Doubles numbers, and remembers what it was asked at a time."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.fails = False

    async def __call__(self, questions: Collection[int]) -> dict[int, int]:
        self.asked.append(list(questions))
        await asyncio.sleep(0)
        if self.fails:
            raise Unavailable
        return {question: 2 * question for question in questions if question >= 0}


async def test_questions_that_come_together_are_asked_once() -> None:
    answering = Answering()
    gathering = Gathering(answering)
    answers = await asyncio.gather(*(gathering.ask(number % 3) for number in range(300)))
    assert answers == [0, 2, 4] * 100
    assert answering.asked == [[0, 1, 2]]


async def test_a_question_that_comes_during_a_call_is_part_of_the_next() -> None:
    """The call under way may have looked before the news that woke the asker."""
    answering = Answering()
    gathering = Gathering(answering)
    first = asyncio.create_task(gathering.ask(1))
    while not answering.asked:  # noqa: ASYNC110 - a fake tells nobody
        await asyncio.sleep(0)
    assert await gathering.ask(1) == 2
    await first
    assert answering.asked == [[1], [1]]


async def test_a_crowd_is_cut_into_calls_of_bounded_size() -> None:
    answering = Answering()
    gathering = Gathering(answering)
    await asyncio.gather(*(gathering.ask(number) for number in range(MAX_QUESTIONS + 1)))
    assert [len(asked) for asked in answering.asked] == [MAX_QUESTIONS, 1]


async def test_what_is_not_there_is_none_and_a_failure_reaches_everybody() -> None:
    answering = Answering()
    gathering = Gathering(answering)
    assert await gathering.ask(-1) is None
    answering.fails = True
    failed = await asyncio.gather(gathering.ask(1), gathering.ask(2), return_exceptions=True)
    assert [type(one) for one in failed] == [Unavailable, Unavailable]
    answering.fails = False
    assert await gathering.ask(1) == 2


async def test_one_who_goes_away_leaves_the_answer_to_the_others() -> None:
    gathering = Gathering(Answering())
    gone, stays = asyncio.create_task(gathering.ask(1)), asyncio.create_task(gathering.ask(1))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == 2


async def test_jobs_are_read_behind_the_walls_of_their_tenants(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    job_id = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    await stage.succeed(app, job_id)
    database = database_of(app)
    async with database.connect() as conn:
        tenant_id = (await conn.exec_driver_sql("SELECT tenant_id FROM jobs WHERE id = %s", (job_id,))).scalar_one()
        expected = await jobs.get(conn, tenant_id, job_id)
        events = await jobs.events(conn, job_id)
    looks = Looks(database, Standstills(database))
    seen = await asyncio.gather(
        looks.job(tenant_id, job_id),
        looks.job(tenant_id, job_id.upper()),
        looks.job(tenant_id + 1, job_id),
        looks.job(tenant_id, "nothing"),
    )
    assert [None if one is None else one.row for one in seen] == [expected, expected, None, None]
    last = events[-1].id
    told = await asyncio.gather(
        looks.timeline(tenant_id, job_id, 0),
        looks.timeline(tenant_id, job_id, last),
        looks.timeline(tenant_id + 1, job_id, 0),
    )
    assert [None if one is None else (one[0].row, one[1]) for one in told] == [(expected, events), (expected, []), None]
