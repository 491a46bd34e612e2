"""A provider's phases, on real rows."""

from __future__ import annotations

import asyncio

import pytest

from compaction.store import jobs, pauses, workers
from compaction.store.pauses import Paused, PauseRow, Probe
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio

NAME = "claude-0123456789ab"


@pytest.fixture
def store_url(database_url: str) -> str:
    """Pauses are everybody's: each test has a database of its own."""
    return database_url


async def pause(stage: Stage, reason: str = "auth_error") -> Paused:
    async with stage.database.begin() as conn:
        return await pauses.pause(conn, NAME, reason, 2.0)


async def row(stage: Stage) -> PauseRow:
    async with stage.database.connect() as conn:
        [found] = await pauses.list_pauses(conn)
    return found


async def due(stage: Stage) -> Probe | None:
    """The right to probe once its time has come."""
    await stage.change("UPDATE provider_pauses SET probe_at = now()")
    async with stage.database.connect() as conn:
        return await pauses.take_probe(conn, NAME)


async def tried(stage: Stage) -> None:
    async with stage.database.connect() as conn:
        assert await pauses.begin_trial(conn, NAME)


async def test_a_provider_that_never_failed_is_open(stage: Stage) -> None:
    async with stage.database.connect() as conn:
        assert await pauses.phase(conn, NAME) == "open"
        assert await pauses.list_pauses(conn) == []


async def test_the_first_failure_pauses_and_those_that_follow_find_it_paused(stage: Stage) -> None:
    assert await pause(stage) == Paused("open", 1)
    first = await row(stage)
    assert (first.phase, first.reason, first.trips, first.probes) == ("paused", "auth_error", 1, 0)
    assert first.probe_at is not None
    assert (first.probe_at - first.changed_at).total_seconds() == pytest.approx(1.0, abs=0.1)
    assert await pause(stage, "overloaded") == Paused("paused", 1)
    assert await row(stage) == first


async def test_of_many_failures_at_once_one_finds_it_open(stage: Stage) -> None:
    found = await asyncio.gather(*(pause(stage) for _ in range(12)))
    assert sorted(one.before for one in found) == ["open"] + ["paused"] * 11
    assert {one.trips for one in found} == {1}


async def test_a_paused_provider_starts_no_job_and_other_workers_do(stage: Stage) -> None:
    await pause(stage)
    job_id = (await stage.enqueue(await stage.session())).job.id
    async with stage.database.connect() as conn:
        assert await stage_claim(stage, job_id, NAME) is False
        assert (await workers.capacity(conn, 60)).slots == 0
    assert await stage_claim(stage, job_id, "claude-another") is True


async def stage_claim(stage: Stage, job_id: str, provider: str | None) -> bool:
    async with stage.database.connect() as conn:
        return await jobs.claim(conn, job_id, "w", 60.0, provider=provider) is not None


async def test_one_of_many_takes_the_probe_and_only_when_it_is_due(stage: Stage) -> None:
    await pause(stage)
    async with stage.database.connect() as conn:
        assert await pauses.take_probe(conn, NAME) is None
    await stage.change("UPDATE provider_pauses SET probe_at = now()")

    async def take() -> Probe | None:
        async with stage.database.connect() as conn:
            return await pauses.take_probe(conn, NAME)

    taken = await asyncio.gather(*(take() for _ in range(8)))
    assert [one for one in taken if one is not None] == [Probe(trips=1, probes=0)]


async def test_a_failed_probe_is_counted_and_tells_the_newest_reason(stage: Stage) -> None:
    await pause(stage, "overloaded")
    assert await due(stage) == Probe(1, 0)
    async with stage.database.connect() as conn:
        await pauses.probe_failed(conn, NAME, "auth_error", 40.0)
    now = await row(stage)
    assert (now.phase, now.probes, now.reason) == ("paused", 1, "auth_error")
    assert await due(stage) == Probe(1, 1)


async def test_a_trial_that_is_answered_opens_and_one_that_fails_pauses_for_longer(stage: Stage) -> None:
    await pause(stage)
    await tried(stage)
    assert (await row(stage)).phase == "trial"
    assert await pause(stage) == Paused("trial", 2)
    again = await row(stage)
    assert again.probe_at is not None
    assert (again.probe_at - again.changed_at).total_seconds() == pytest.approx(2.0, abs=0.1)
    await tried(stage)
    async with stage.database.connect() as conn:
        assert await pauses.answered(conn, NAME)
        assert not await pauses.answered(conn, NAME)
    opened = await row(stage)
    assert (opened.phase, opened.trips, opened.reason) == ("open", 0, "auth_error")
    assert await pause(stage) == Paused("open", 1)


async def test_a_job_that_is_claimed_during_a_trial_knows_it(stage: Stage) -> None:
    await pause(stage)
    await tried(stage)
    job_id = (await stage.enqueue(await stage.session())).job.id
    async with stage.database.connect() as conn:
        claim = await jobs.claim(conn, job_id, "w", 60.0, provider=NAME)
        assert claim is not None
        assert claim.on_trial
        [(token,)] = await stage.query("SELECT trial_token FROM provider_pauses")
        assert await jobs.running_since(conn, token) == 1
        assert await jobs.running_since(conn, claim.token) == 0


async def test_an_answer_that_comes_during_a_pause_does_not_end_it(stage: Stage) -> None:
    """The call began before; it says nothing about the trouble since."""
    await pause(stage)
    async with stage.database.connect() as conn:
        assert not await pauses.answered(conn, NAME)
    assert (await row(stage)).phase == "paused"


async def test_an_operator_opens_it_from_any_phase(stage: Stage) -> None:
    await pause(stage)
    async with stage.database.connect() as conn:
        assert await pauses.resume(conn, NAME)
        assert not await pauses.resume(conn, NAME)
        assert await pauses.phase(conn, NAME) == "open"
        assert not await pauses.begin_trial(conn, NAME)


async def test_capacity_counts_slots_by_the_phase_of_their_provider(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        await workers.beat_worker(conn, "a:1", 4, 0, 0.0, False, NAME)
        await workers.beat_worker(conn, "b:1", 3, 0, 0.0, False)
        await workers.beat_worker(conn, "c:1", 2, 0, 0.0, True)
    async with stage.database.connect() as conn:
        assert (await workers.capacity(conn, 60)).slots == 7
        assert await workers.sharers(conn, NAME, 60) == 1
    await pause(stage)
    async with stage.database.connect() as conn:
        paused = await workers.capacity(conn, 60)
    assert (paused.slots, paused.trial_token) == (3, None)
    await tried(stage)
    async with stage.database.connect() as conn:
        trial = await workers.capacity(conn, 60)
    assert trial.slots == 3
    assert trial.trial_token is not None
