"""Something happens at every call of a job to a port or the store, one after the other: the job comes out whole."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import pytest

from compaction.errors import Unavailable
from compaction.store.engine import Database
from tests.chaos.bench import Bench
from tests.chaos.tripwire import Tripwire, WiredDatabase
from tests.integration.store.stage import staged
from tests.unit.fakes import ScriptedSummarizer
from worker.heartbeat import Heart
from worker.held import Reason

pytestmark = [pytest.mark.anyio, pytest.mark.chaos, pytest.mark.timeout(300)]


def away() -> NoReturn:
    """Postgres is away."""
    raise Unavailable


def reset() -> NoReturn:
    """A connection breaks."""
    raise ConnectionResetError("the peer is gone")


def torn() -> NoReturn:
    """The task is cancelled, and nobody says why."""
    raise asyncio.CancelledError


@pytest.fixture
async def bench(module_database_url: str) -> AsyncIterator[Bench]:
    plain, wired = Database(module_database_url, pool_size=3), WiredDatabase(module_database_url)
    yield Bench(await staged(plain), wired, module_database_url)
    await plain.close()
    await wired.close()


async def test_a_job_calls_every_port(bench: Bench) -> None:
    """Otherwise the sweeps below would prove less than they say."""
    assert set(await bench.steps_of_a_job()) >= {
        "before history.load",
        "before summarizer.summarize",
        "before recorder.before_call",
        "before recorder.save_summary",
        "before hooks.pre_compact",
        "before hooks.session_start",
        "store: before a statement",
        "store: after a statement",
    }


@pytest.mark.parametrize("fault", [away, reset, torn], ids=lambda fault: fault.__name__)
async def test_a_fault_at_any_call_neither_loses_nor_doubles_the_job(bench: Bench, fault: Callable[[], object]) -> None:
    """It succeeds with one result, one call more at most, one lost lease at most."""
    broken = []
    for at, name in enumerate(await bench.steps_of_a_job()):
        job_id, summarizer = await bench.job(), ScriptedSummarizer()
        with contextlib.suppress(Unavailable, ConnectionResetError, asyncio.CancelledError):
            await bench.deliver(job_id, Tripwire(at, fault), summarizer, bench.heart())
        await bench.run_to_the_end(job_id, summarizer)
        found = await bench.problems(job_id, len(summarizer.requests), "succeeded")
        broken += [f"at step {at} ({name}): {problem}" for problem in found]
    assert broken == []


@pytest.mark.parametrize("reason", ["cancel", "drain", "lease"])
async def test_an_interruption_at_any_call_leaves_the_job_whole(bench: Bench, reason: Reason) -> None:
    """A cancel ends it there and then or comes too late; a drain gives it back with its attempt; neither costs a lease.

    After a lost lease the job is another worker's, and this one writes nothing.
    """
    broken = []
    for at, name in enumerate(await bench.steps_of_a_job()):
        job_id, summarizer, heart = await bench.job(), ScriptedSummarizer(), bench.heart()

        def stop_all(heart: Heart = heart) -> None:
            for held in heart.held():
                held.stop(reason)

        await bench.deliver(job_id, Tripwire(at, stop_all), summarizer, heart)
        job = await bench.stage.job(job_id)
        left = {
            "cancel": {"succeeded", "cancelled"},
            "drain": {"succeeded", "retrying"},
            "lease": {"succeeded", "running"},
        }
        if job.status not in left[reason] or (job.status == "retrying" and job.attempt != 0):
            broken.append(f"at step {at} ({name}): {job.status} after {job.attempt} attempts")
        await bench.run_to_the_end(job_id, summarizer)
        found = await bench.problems(job_id, len(summarizer.requests), "succeeded", "cancelled")
        broken += [f"at step {at} ({name}): {problem}" for problem in found]
    assert broken == []
