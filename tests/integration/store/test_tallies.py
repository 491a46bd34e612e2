"""How jobs ended, counted once per period: exact, never twice, and the rest on the spot."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.store import results, tallies
from compaction.store.engine import Database
from compaction.store.jobs import Finish
from compaction.store.reach import Reach
from compaction.store.tallies import Lately, Tally
from tests.integration.store.stage import Stage, compacted, staged

pytestmark = pytest.mark.anyio

FAILED = {"code": "no_summary", "message": "It did not work.", "retryable": False}


@pytest.fixture
def store_url(database_url: str) -> str:
    """Counts see every tenant's jobs: each test has a database of its own."""
    return database_url


async def succeed(stage: Stage, minutes_ago: int, cost: Decimal | None = Decimal("0.25")) -> str:
    """A job that ended so long ago; its result saves 900 tokens."""
    claim = await stage.running(await stage.session(messages=2))
    result = results.encode_result(compacted(claim, cost_usd=cost))
    assert await stage.finish(claim, Finish(status="succeeded", was_compacted=True, result=result))
    await age(stage, claim.job.id, minutes_ago)
    return claim.job.id


async def age(stage: Stage, job_id: str, minutes: int) -> None:
    await stage.change("UPDATE jobs SET ended_at = now() - %s * interval '1 minute' WHERE id = %s", minutes, job_id)


async def count_all(database: Database) -> int:
    """Counts until nothing is left; how many steps it took."""
    for number in range(1, 1_000):
        async with database.begin() as conn:
            if not await tallies.count_next(conn):
                return number
    raise AssertionError("counting does not end")


async def lately(database: Database, reach: Reach, hours: float = 24) -> Lately:
    async with database.connect() as conn:
        return await tallies.lately(conn, reach, hours)


def by_outcome(found: Lately) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in found.tallies:
        sums[one.outcome] = sums.get(one.outcome, 0) + one.jobs
    return sums


async def test_every_way_to_end_is_counted_with_its_tokens_and_cost(stage: Stage, database: Database) -> None:
    await succeed(stage, 40)
    await succeed(stage, 40, cost=None)
    skipped = await stage.running(await stage.session())
    assert await stage.finish(skipped, Finish(status="succeeded", was_compacted=False, reason="nothing_to_compact"))
    await age(stage, skipped.job.id, 40)
    failed = await stage.running(await stage.session())
    assert await stage.finish(failed, Finish(status="failed", error=FAILED))
    await age(stage, failed.job.id, 40)
    await count_all(database)

    found = await lately(database, Reach(stage.tenant_id))

    assert by_outcome(found) == {"succeeded": 2, "skipped": 1, "failed": 1}
    [one] = [tally for tally in found.tallies if tally.outcome == "succeeded"]
    assert one == Tally(one.at, "succeeded", "claude-sonnet-5", 2, 2_000, 200, Decimal("0.25"), 1)
    assert found.missing_from is None


async def test_counting_again_counts_nothing_twice_and_what_came_since_is_there_at_once(
    stage: Stage, database: Database
) -> None:
    await succeed(stage, 40)
    await count_all(database)
    assert await count_all(database) == 1
    await succeed(stage, 0)

    assert by_outcome(await lately(database, Reach(stage.tenant_id))) == {"succeeded": 2}
    assert by_outcome(await lately(database, Reach())) == {"succeeded": 2}


async def test_a_tenant_sees_its_own_and_everybody_is_the_sum(stage: Stage, database: Database) -> None:
    other = await staged(database)
    for one, minutes in ((stage, 40), (stage, 0), (other, 50), (other, 0), (other, 0)):
        await succeed(one, minutes)
    await count_all(database)

    assert by_outcome(await lately(database, Reach(stage.tenant_id))) == {"succeeded": 2}
    assert by_outcome(await lately(database, Reach(other.tenant_id))) == {"succeeded": 3}
    assert by_outcome(await lately(database, Reach())) == {"succeeded": 5}


async def test_a_service_that_was_never_counted_says_from_when_it_knows_nothing(
    stage: Stage, database: Database
) -> None:
    """Nobody counts a million rows for a page: the last quarter of an hour is counted, and the rest is told missing."""
    await succeed(stage, 40)
    await succeed(stage, 5)

    found = await lately(database, Reach())

    assert by_outcome(found) == {"succeeded": 1}
    assert found.missing_from is not None
    assert found.fresh_from is not None
    assert (found.now - found.fresh_from).total_seconds() == tallies.FRESH_SECONDS


async def test_the_first_count_of_an_empty_service_is_one_step(database: Database) -> None:
    assert await count_all(database) == 1
    assert (await lately(database, Reach())).missing_from is None


async def test_an_hour_of_jobs_is_counted_in_a_step(stage: Stage, database: Database) -> None:
    """Three hours and a half back: four steps, so that the leader is never held for long."""
    await succeed(stage, 210)

    assert await count_all(database) in (4, 5)
    assert by_outcome(await lately(database, Reach())) == {"succeeded": 1}


async def test_old_tallies_go(stage: Stage, database: Database) -> None:
    await succeed(stage, 40)
    await count_all(database)
    await stage.change("UPDATE job_tallies SET at = at - interval '32 days' WHERE outcome <> 'counted'")

    async with database.begin() as conn:
        assert await tallies.prune(conn) == 2  # the tenant's row and everybody's
