"""A worker that is still there takes back what was counted as its death, and hands on what it does not run."""

from __future__ import annotations

import pytest

from compaction.core.jobs import MAX_ATTEMPTS, MAX_CRASHES
from compaction.store import jobs, survivals
from compaction.store.jobs import Claim
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio

OWNER = "worker-1"


@pytest.fixture
def store_url(database_url: str) -> str:
    """These tests look at all running jobs of an owner: each has a database of its own."""
    return database_url


async def reap(stage: Stage, claim: Claim) -> None:
    await stage.expire(claim)
    async with stage.database.begin() as conn:
        await jobs.reap_expired(conn, 10)
    await stage.change("UPDATE jobs SET not_before = now() WHERE id = %s", claim.job.id)


async def forgive(stage: Stage, claim: Claim, owner: str = OWNER) -> frozenset[int]:
    async with stage.database.connect() as conn:
        return await survivals.forgive(conn, owner, {claim.token: claim.job.id})


async def hand_back(stage: Stage, held: list[int], lost: list[int], settle_seconds: float = 0.0) -> list[int]:
    async with stage.database.connect() as conn:
        return await survivals.hand_back(conn, OWNER, held, lost, settle_seconds=settle_seconds)


async def crashes(stage: Stage, claim: Claim) -> int:
    return (await stage.job(claim.job.id)).crashes


async def test_a_crash_that_was_none_is_taken_back_once(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await reap(stage, claim)
    assert await crashes(stage, claim) == 1
    assert await forgive(stage, claim) == frozenset()
    assert await forgive(stage, claim) == frozenset()
    assert await crashes(stage, claim) == 0
    told = "SELECT outcome FROM attempts WHERE lease_token = %s"
    assert await stage.query(told, claim.token) == [("fenced",)]


async def test_only_the_owner_says_that_it_lives(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await reap(stage, claim)
    await forgive(stage, claim, owner="worker-2")
    assert await crashes(stage, claim) == 1


async def test_a_lease_that_nobody_has_judged_is_asked_for_again(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert await forgive(stage, claim) == {claim.token}


async def test_a_job_that_lives_on_elsewhere_is_forgiven_while_it_runs(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await reap(stage, claim)
    again = await stage.claim(claim.job.id, owner="worker-2")
    await forgive(stage, claim)
    assert (await crashes(stage, again), (await stage.job(again.job.id)).status) == (0, "running")


async def test_a_job_that_has_failed_stays_failed(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.change("UPDATE jobs SET crashes = %s WHERE id = %s", MAX_CRASHES - 1, claim.job.id)
    await reap(stage, claim)
    assert await forgive(stage, claim) == frozenset()
    ended = await stage.job(claim.job.id)
    assert (ended.status, ended.crashes) == ("failed", MAX_CRASHES)


async def test_a_given_up_job_runs_elsewhere_at_once_and_its_attempt_counts(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    kept = await stage.running(await stage.session())
    assert await hand_back(stage, [kept.token], [claim.token]) == [claim.token]
    again = await stage.claim(claim.job.id, owner="worker-2")
    assert (again.job.attempt, again.job.crashes) == (2, 0)
    assert (await stage.job(kept.job.id)).status == "running"


async def test_a_given_up_last_attempt_is_left_to_the_reaper(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.change("UPDATE jobs SET attempt = %s WHERE id = %s", MAX_ATTEMPTS, claim.job.id)
    assert await hand_back(stage, [], [claim.token]) == []
    await reap(stage, claim)
    assert (await stage.job(claim.job.id)).status == "failed"


async def test_a_claim_whose_answer_never_came_costs_no_attempt(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert await hand_back(stage, [], []) == [claim.token]
    again = await stage.claim(claim.job.id, owner="worker-2")
    assert (again.job.attempt, again.job.crashes) == (1, 0)


async def test_a_claim_that_is_under_way_is_left_alone(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert await hand_back(stage, [], [], settle_seconds=15.0) == []
    assert (await stage.job(claim.job.id)).status == "running"


async def test_a_job_that_somebody_wants_cancelled_does_not_go_back(stage: Stage) -> None:
    """It would wait for a worker for ever: nobody claims it, and the reaper cancels what runs."""
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        await jobs.cancel(conn, stage.tenant_id, claim.job.id)
    assert await hand_back(stage, [], [claim.token]) == []
    await reap(stage, claim)
    assert (await stage.job(claim.job.id)).status == "cancelled"


async def test_nothing_of_another_owner_is_handed_back(stage: Stage) -> None:
    job = (await stage.enqueue(await stage.session())).job
    claim = await stage.claim(job.id, owner="worker-2")
    assert await hand_back(stage, [], [claim.token]) == []
