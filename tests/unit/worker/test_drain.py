"""The end of a worker."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from worker import drain as drain_module
from worker.drain import LATE, Drain


@dataclass
class Job:
    """A running job that remembers why it was stopped."""

    reasons: list[str] = field(default_factory=list)

    def stop(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass
class QuietHeart:
    """What a drain needs of a heart."""

    jobs: list[Job]
    draining: bool = False

    def drain(self) -> None:
        self.draining = True

    def held(self) -> list[Job]:
        return self.jobs


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"RELEASE_SECONDS": 0.2, "HURRY_SECONDS": 0.2, "GOODBYE_SECONDS": 0.2}.items():
        monkeypatch.setattr(drain_module, name, seconds)


def draining(seconds: float, *jobs: Job) -> tuple[Drain, QuietHeart, list[int]]:
    heart = QuietHeart(list(jobs))
    codes: list[int] = []
    fake: Any = heart
    return Drain(fake, seconds, codes.append), heart, codes


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_new_claims_from_the_first_moment_and_running_jobs_go_on() -> None:
    job = Job()
    drain, heart, codes = draining(60.0, job)
    drain.begin()
    assert heart.draining
    time.sleep(0.3)
    assert (job.reasons, codes) == ([], [])


def test_what_still_runs_near_the_end_is_given_back() -> None:
    job = Job()
    drain, _, _ = draining(0.5, job)
    drain.begin()
    until(lambda: job.reasons)
    assert job.reasons == ["drain"]


def test_a_second_signal_gives_everything_back_at_once() -> None:
    job = Job()
    drain, _, codes = draining(600.0, job)
    drain.begin()
    drain.hurry()
    until(lambda: job.reasons)
    until(lambda: codes)
    assert codes == [LATE]  # the job did not end: its lease will


def test_a_job_that_cannot_be_given_back_does_not_keep_the_process_alive() -> None:
    drain, _, codes = draining(0.3, Job())
    drain.begin()
    until(lambda: codes)
    assert codes == [LATE]


def test_to_begin_twice_is_to_begin_once() -> None:
    drain, _, _ = draining(600.0)
    before = threading.active_count()
    drain.begin()
    drain.begin()
    assert threading.active_count() == before + 1
    drain.hurry()


def test_the_first_signal_goes_where_it_went_before_and_the_second_hurries() -> None:
    heard: list[int] = []
    old = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in old:
            signal.signal(number, lambda got, _frame: heard.append(got))
        drain, heart, _ = draining(600.0)
        drain.listen()
        signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        heart.draining = True
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert heard == [signal.SIGTERM]
        assert drain._hurry.is_set()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
