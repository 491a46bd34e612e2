"""Self-fencing: a worker gives up the jobs whose leases it could not renew, and only those."""

from __future__ import annotations

from worker.heartbeat import SELF_FENCE_SHARE, Heart
from worker.held import Held
from worker.recorder import AttemptRecorder

LEASE_SECONDS = 60.0


def heart() -> Heart:
    """A heart that does not beat by itself."""
    return Heart(
        owner="host:1:a",
        database_url="postgresql+psycopg://nobody@127.0.0.1:1/none",
        slots=2,
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=10.0,
        lag_seconds=lambda: 0.0,
    )


def held(token: int, *, silent_seconds: float = 0.0) -> Held:
    """A job whose lease was renewed so long ago."""
    recorder = AttemptRecorder(None, f"job-{token}", token)  # type: ignore[arg-type]  # no database is asked
    one = Held(f"job-{token}", token, recorder, lambda: None)
    one.renewed_at -= silent_seconds
    return one


def test_a_job_claimed_after_an_outage_is_not_fenced_for_the_silence_before_it() -> None:
    """The process could not beat for a minute; a claim is a renewal of its own."""
    one = heart()
    old, fresh = held(1, silent_seconds=46.0), held(2)
    one.hold(old)
    one.hold(fresh)
    one._fence_if_silent()
    assert (old.reason, fresh.reason) == ("lease", None)


def test_the_fence_comes_before_the_lease_ends() -> None:
    """45 of 60 seconds."""
    assert LEASE_SECONDS * SELF_FENCE_SHARE == 45.0
    one = heart()
    job = held(1, silent_seconds=44.0)
    one.hold(job)
    one._fence_if_silent()
    assert job.reason is None


def test_a_stopped_job_keeps_its_first_reason() -> None:
    job = held(1)
    job.stop("cancel")
    job.stop("lease")
    assert job.reason == "cancel"


def test_a_job_that_was_let_go_is_held_no_longer() -> None:
    one = heart()
    one.hold(held(1))
    one.let_go(1)
    one.let_go(1)
    assert one.held() == []


def test_an_attempt_whose_end_could_not_be_written_counts_as_lost() -> None:
    one = heart()
    one.hold(held(1))
    one.give_up("job-1", 1)
    one.let_go(1)
    assert one._lost == {1: "job-1"}
