"""Which jobs that lost a worker run beside each other in one process."""

from __future__ import annotations

from compaction.core.jobs import MAX_SUSPECTS
from worker.quarantine import Quarantine


def test_a_fresh_job_always_comes_in() -> None:
    quarantine = Quarantine()
    assert quarantine.admit(1, crashes=2)
    assert quarantine.admit(2, crashes=0)


def test_a_last_chance_is_alone_until_it_leaves() -> None:
    quarantine = Quarantine()
    assert quarantine.admit(1, crashes=2)
    assert not quarantine.admit(2, crashes=1)
    quarantine.leave(1)
    assert quarantine.admit(2, crashes=1)
    assert not quarantine.admit(3, crashes=2)


def test_few_that_lost_one_worker_are_here_at_once() -> None:
    quarantine = Quarantine()
    admitted = [quarantine.admit(token, crashes=1) for token in range(MAX_SUSPECTS + 1)]
    assert admitted == [True] * MAX_SUSPECTS + [False]


def test_who_was_not_admitted_takes_no_place() -> None:
    quarantine = Quarantine()
    assert quarantine.admit(1, crashes=1)
    assert not quarantine.admit(2, crashes=2)
    quarantine.leave(1)
    assert quarantine.admit(3, crashes=2)
