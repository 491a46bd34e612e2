"""The short form of `make chaos`: every kind of fault once, and the same ledger."""

from __future__ import annotations

import random
import secrets
from pathlib import Path

import pytest

from tests.chaos.arena import Arena
from tests.chaos.audit import Audit, table
from tests.chaos.director import Plan, run
from tests.chaos.faults import workers
from tests.chaos.faults.kinds import WEIGHTS
from tests.chaos.producer import Producer
from tests.chaos.scene import Scene
from tests.chaos.slots import wait

JOBS = 40
SLOW = [{"good_summary": {}, "delay_s": 4.0}]  # the others wait for the model whenever the poison strikes
INNOCENT = 10  # with the poison they fill the worker's slots
MAX_SECONDS = 300.0  # 50 on a quiet machine


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_jobs_survive_every_kind_of_fault() -> None:
    """Nothing lost, nothing doubled, nobody else hurt; the seed and the faults in their order are printed."""
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")
    plan = Plan(seed=seed, jobs=JOBS, faults=len(WEIGHTS), max_seconds=MAX_SECONDS, sessions=15, long_seconds=2.0)
    report = run(plan, print)
    assert report.is_good, table(report.lines)
    assert sum(report.kinds.values()) >= len(WEIGHTS)
    assert report.jobs >= JOBS


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_poison_job_hurts_none_of_those_that_share_its_worker(tmp_path: Path) -> None:
    """One worker has them all; it dies three times, and the poison alone fails for it."""
    rng = random.Random(7)
    with Arena(tmp_path, workers=1) as arena:
        arena.fake.play(SLOW)
        with Producer(arena, rng, sessions=INNOCENT) as producer:
            workers.poison(Scene(arena, producer, rng, long_seconds=0))
            producer.order(INNOCENT)
            assert wait(lambda: producer.is_idle, MAX_SECONDS)
            assert wait(lambda: not arena.rows("SELECT FROM jobs WHERE ended_at IS NULL"), MAX_SECONDS)
        audit = Audit(arena, producer)
        lines = audit.lines()
    assert audit.outcomes()["worker_lost"] == 1, table(lines)
    assert [line for line in lines if not line.is_kept] == []
