"""The database is asked for its revision now and then, however often one asks us."""

from __future__ import annotations

import asyncio

import pytest

from api.revision import FRESH_SECONDS, Revision
from compaction.errors import Unavailable

pytestmark = pytest.mark.anyio


class Database:
    """Answers with what stands next; counts the questions."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.now = 0.0

    async def ask(self) -> str | None:
        self.asked += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clock(self) -> float:
        return self.now


async def test_it_is_asked_for_again_only_after_a_while() -> None:
    database = Database("0001", "0002")
    revision = Revision(database.ask, database.clock)

    assert [await revision.read(), await revision.read()] == ["0001", "0001"]
    database.now = FRESH_SECONDS - 0.1
    assert await revision.read() == "0001"
    database.now = FRESH_SECONDS
    assert await revision.read() == "0002"
    assert database.asked == 2


async def test_callers_that_come_together_share_one_question() -> None:
    database = Database(None)
    revision = Revision(database.ask, database.clock)

    assert await asyncio.gather(*(revision.read() for _ in range(20))) == [None] * 20
    assert database.asked == 1


async def test_a_question_that_failed_is_not_remembered() -> None:
    database = Database(Unavailable("away"), "0001")
    revision = Revision(database.ask, database.clock)

    with pytest.raises(Unavailable):
        await revision.read()
    assert await revision.read() == "0001"
