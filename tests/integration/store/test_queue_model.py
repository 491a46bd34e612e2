"""Any sequence of what producers, workers, the reconciler and the network can do leaves the queue as the model says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compaction.core.jobs import MAX_ATTEMPTS, MAX_CRASHES, MAX_MODEL_CALLS, Trigger
from compaction.errors import LeaseLost
from compaction.store import jobs, survivals
from compaction.store.engine import Database
from compaction.store.jobs import Claim, Finish
from tests.integration.store.queue_model import (
    ModelJob,
    ModelQueue,
    ModelSession,
    held_again,
    left,
    live,
    lost,
    reaped,
    running,
    waiting,
)
from tests.integration.store.stage import Stage, message, staged, success

T = TypeVar("T")
Pick = Callable[[ModelJob], bool]

SESSIONS = 2
EXAMPLES = int(os.environ.get("COMPACTD_MODEL_EXAMPLES", "100"))  # sequences; `make chaos` asks for more
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)  # a database is no pure function
STEPS = 40  # events in a sequence
OWNERS = ("worker-1", "worker-2")
WAYS = ("succeeded", "skipped", "failed", "retry", "release", "cancelled")
MAX_ROUNDS = 20  # until every job has ended: each needs two claims at most once nothing goes wrong any more
ROWS = """
    SELECT jobs.id::text, status, attempt, crashes, jobs.covers_through_seq, jobs.lease_token, ended_at IS NOT NULL,
           results.lease_token, ARRAY(SELECT lease_token FROM attempts WHERE job_id = jobs.id AND ended_at IS NULL)
    FROM jobs LEFT JOIN results ON results.job_id = jobs.id WHERE tenant_id = %s
"""
END_LEASE = "UPDATE jobs SET lease_expires_at = now() - interval '1 second' WHERE id = %s"
END_PAUSE = "UPDATE jobs SET not_before = now() - interval '1 second' WHERE id = %s"
END_TIME = "UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s"


def any_of(pick: Pick) -> Callable[[QueueMachine], bool]:
    """Whether there is such a job: a rule that would do nothing is not tried."""
    return lambda machine: any(map(pick, machine.model.jobs.values()))


class QueueMachine(RuleBasedStateMachine):
    """The store beside its model. Every rule does the same to both and compares the answers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, database: Database) -> None:
        super().__init__()
        self._loop = loop
        self._database = database
        self.model = ModelQueue(sessions=[ModelSession(number) for number in range(SESSIONS)])
        self.claims: dict[str, Claim] = {}
        self.newest_token = 0
        self.stage: Stage = self.wait(staged(database))
        self.rows = [self.wait(self.stage.session()) for _ in range(SESSIONS)]

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine."""
        return self._loop.run_until_complete(work)

    @rule(number=st.integers(0, SESSIONS - 1))
    def append(self, number: int) -> None:
        """The producer says something."""
        session = self.model.sessions[number]
        session.head += 1
        assert self.wait(self.stage.append(self.rows[number], message(f"m{session.head}"))).head_seq == session.head
        self._no_message_leaves_the_live_view_uncovered(number)

    @rule(number=st.integers(0, SESSIONS - 1), owner=st.sampled_from(OWNERS))
    def work(self, number: int, owner: str) -> None:
        """What happens most: a session's job is in a worker's hands, whatever there was before."""
        job = self.model.active(number) or self.model.waiting(number)
        if job is None:
            self._enqueue(number, "manual", later=False)
            job = self.model.waiting(number)
        assert job is not None
        if job.is_waiting and not job.is_overdue:
            self._wake(job)
            self._claim(job, owner)

    @rule(
        number=st.integers(0, SESSIONS - 1),
        trigger=st.sampled_from(["auto", "manual", "reactive", "bulk"]),
        later=st.sampled_from([False, False, False, True]),
    )
    def enqueue(self, number: int, trigger: Trigger, later: bool) -> None:
        """A new job, or the one that waits; the promise is that it covers everything said so far."""
        self._enqueue(number, trigger, later=later)

    def _enqueue(self, number: int, trigger: Trigger, *, later: bool) -> None:
        not_before = datetime.now(UTC) + timedelta(hours=1) if later else None
        put = self.wait(self.stage.enqueue(self.rows[number], trigger, not_before=not_before))
        waiting = self.model.waiting(number)
        assert put.created == (waiting is None)
        job = waiting or ModelJob(put.job.id, number, is_due=False)
        assert put.job.id == job.id
        job.is_due = job.is_due or not later
        job.is_overdue = False
        self.model.jobs[job.id] = job
        retrying = self.model.active(number)
        if retrying is not None and retrying.status == "retrying" and trigger in {"manual", "reactive"}:
            retrying.is_due = True
        self.model.promises.append((job.id, self.model.sessions[number].head))

    def _one(self, data: st.DataObject, pick: Pick = bool) -> ModelJob:
        """A job of that kind, by dice."""
        return data.draw(st.sampled_from([job for job in self.model.jobs.values() if pick(job)]))

    @precondition(any_of(waiting))
    @rule(data=st.data(), owner=st.sampled_from(OWNERS))
    def deliver(self, data: st.DataObject, owner: str) -> None:
        """A message reaches a worker."""
        self._claim(self._one(data, waiting), owner)

    @precondition(any_of(bool))
    @rule(data=st.data(), owner=st.sampled_from(OWNERS))
    def deliver_again(self, data: st.DataObject, owner: str) -> None:
        """A message reaches a worker for the second time, too early, or when the job has long ended."""
        self._claim(self._one(data), owner)

    def _claim(self, job: ModelJob, owner: str) -> None:
        may = self.model.may_claim(job, owner)
        claim = self.wait(self.stage.try_claim(job.id, owner))
        assert (claim is not None) == may
        if claim is None:
            return
        assert claim.token > self.newest_token
        self.newest_token = claim.token
        job.take(claim.token, owner, self.model.sessions[job.session].head)
        self.claims[job.id] = claim
        assert (claim.covers_through_seq, claim.job.attempt) == (job.covers, job.attempt)

    @precondition(any_of(running))
    @rule(owner=st.sampled_from(OWNERS))
    def beat(self, owner: str) -> None:
        """Only current leases of this owner are renewed, and it hears of those that somebody wants cancelled."""
        everything = [job for job in self.model.jobs.values() if job.token is not None]
        held = [job for job in everything if job.owner == owner]
        tokens = [job.token or 0 for job in everything]
        tokens += [token for job in self.model.jobs.values() for token in job.old_tokens]
        heard = self.wait(self._beat(owner, tokens))
        assert heard.alive == {job.token for job in held}
        assert heard.cancel_requested == {job.id for job in held if job.wants_cancel}
        for job in held:
            job.is_expired = False

    async def _beat(self, owner: str, tokens: list[int]) -> jobs.Beat:
        async with self._database.begin() as conn:
            return await jobs.beat(conn, owner, 60, tokens)

    @precondition(any_of(running))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """The worker is silent for longer than its lease."""
        self._expire(self._one(data, running))

    def _expire(self, job: ModelJob) -> None:
        self.wait(self.stage.change(END_LEASE, job.id))
        job.is_expired = True

    @precondition(any_of(waiting))
    @rule(data=st.data())
    def let_a_pause_pass(self, data: st.DataObject) -> None:
        """A job may start now."""
        self._wake(self._one(data, waiting))

    def _wake(self, job: ModelJob) -> None:
        self.wait(self.stage.change(END_PAUSE, job.id))
        job.is_due = True

    @precondition(any_of(live))
    @rule(data=st.data())
    def let_the_deadline_pass(self, data: st.DataObject) -> None:
        """A job has waited for a day."""
        job = self._one(data, live)
        self.wait(self.stage.change(END_TIME, job.id))
        job.is_overdue = True

    @precondition(any_of(lost))
    @rule()
    def reap(self) -> None:
        """Exactly the expired and the overdue ones are taken away, once."""
        taken = {job.id: job.token for job in self.model.jobs.values() if job.status == "running" and job.is_expired}
        overdue = {job.id: None for job in self.model.jobs.values() if job.is_waiting and job.is_overdue}
        for job_id in taken:
            self.model.jobs[job_id].lose()
        for job_id in overdue:
            self.model.jobs[job_id].leave("failed")
        reaped = self.wait(self._reap())
        assert sorted((one.job_id, one.token or 0) for one in reaped) == sorted(
            (key, token or 0) for key, token in [*taken.items(), *overdue.items()]
        )

    async def _reap(self) -> list[jobs.Reaped]:
        async with self._database.begin() as conn:
            return await jobs.reap_expired(conn, 100)

    @precondition(any_of(reaped))
    @rule(data=st.data(), owner=st.sampled_from(OWNERS))
    def survive(self, data: st.DataObject, owner: str) -> None:
        """A worker that only was frozen or cut off says so, for what it lost; another one cannot say it."""
        job = self._one(data, reaped)
        self.wait(self._survive(owner, dict.fromkeys(job.reaped, job.id)))
        job.survive(owner)

    async def _survive(self, owner: str, tokens: dict[int, str]) -> None:
        async with self._database.connect() as conn:
            await survivals.forgive(conn, owner, tokens)

    @precondition(any_of(running))
    @rule(data=st.data())
    def hand_back(self, data: st.DataObject) -> None:
        """A worker gives up one job, and keeps all others."""
        job = self._one(data, running)
        assert job.token is not None
        goes = job.attempt < MAX_ATTEMPTS and not job.wants_cancel
        assert self.wait(self._hand_back(job.owner, job.token)) == ([job.token] if goes else [])
        if goes:
            job.hand_back()

    async def _hand_back(self, owner: str, token: int) -> list[int]:
        async with self._database.connect() as conn:
            return await survivals.hand_back(conn, owner, [], [token], settle_seconds=3600.0)

    @precondition(any_of(running))
    @rule(data=st.data(), how=st.sampled_from(WAYS))
    def commit(self, data: st.DataObject, how: str) -> None:
        """The holder ends its attempt, in time or late but before the reaper."""
        self._commit(self._one(data, running), how)

    def _commit(self, job: ModelJob, how: str) -> None:
        assert self._finish(self.claims[job.id], how)
        token = job.token
        if how in {"retry", "release"}:
            job.retry(is_due=how == "release", counted=how == "retry")
            return
        job.leave({"skipped": "succeeded"}.get(how, how))  # type: ignore[arg-type]  # the other words are states
        if how == "succeeded":
            job.winner = token
            self.model.sessions[job.session].live_job = job.id
            self._no_message_leaves_the_live_view_uncovered(job.session)

    @precondition(any_of(left))
    @rule(data=st.data(), how=st.sampled_from(WAYS))
    def commit_late(self, data: st.DataObject, how: str) -> None:
        """A worker that lost its lease, or whose answer was lost, commits: nothing happens."""
        job = self._one(data, held_again if any_of(held_again)(self) else left)
        stale = replace(self.claims[job.id], token=data.draw(st.sampled_from(job.old_tokens)))
        assert not self._finish(stale, how)
        assert not self.wait(self._save(stale))
        with pytest.raises(LeaseLost):
            self.wait(self._count_call(stale))

    @precondition(any_of(running))
    @rule(data=st.data())
    def pay(self, data: st.DataObject) -> None:
        """The holder counts a call and saves its summary."""
        claim = self.claims[self._one(data, running).id]
        self.wait(self._count_call(claim))
        assert self.wait(self._save(claim))

    @precondition(any_of(bool))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """At once while it waits, marked while it runs, unchanged when it has ended."""
        job = self._one(data)
        row = self.wait(self._cancel(job.id))
        assert row is not None
        if job.is_waiting:
            job.leave("cancelled")
        job.wants_cancel = job.wants_cancel or job.status == "running"
        assert row.status == job.status

    async def _cancel(self, job_id: str) -> jobs.JobRow | None:
        async with self._database.begin() as conn:
            return await jobs.cancel(conn, self.stage.tenant_id, job_id)

    async def _save(self, claim: Claim) -> bool:
        async with self._database.connect() as conn:
            return await jobs.save_paid_summary(conn, claim.job.id, claim.token, b"{}")

    async def _count_call(self, claim: Claim) -> bool:
        async with self._database.connect() as conn:
            return await jobs.count_model_call(conn, claim.job.id, claim.token, MAX_MODEL_CALLS)

    def _finish(self, claim: Claim, how: str) -> bool:
        decisions = {
            "succeeded": success(claim),
            "skipped": Finish(status="succeeded", was_compacted=False, reason="below_threshold"),
            "failed": Finish(status="failed", error={"code": "no_summary", "message": "", "retryable": False}),
            "retry": Finish(status="retrying", delay_seconds=3600),
            "release": Finish(status="retrying", counted=False),
            "cancelled": Finish(status="cancelled"),
        }
        return self.wait(self.stage.finish(claim, decisions[how]))

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        """And results are the winners' alone, and exactly the running attempts are open."""
        found = {row[0]: row[1:] for row in self.wait(self.stage.query(ROWS, self.stage.tenant_id))}
        assert found == {job.id: job.row for job in self.model.jobs.values()}

    @invariant()
    def every_number_is_bounded(self) -> None:
        """At most one active and one waiting job a session, five attempts, three crashes."""
        for session in self.model.sessions:
            self.model.waiting(session.number)
            self.model.active(session.number)
        assert all(job.attempt <= MAX_ATTEMPTS and job.crashes <= MAX_CRASHES for job in self.model.jobs.values())

    @invariant()
    def newer_input_is_never_forgotten(self) -> None:
        """The job of an enqueue, once it has started, covers what had been said by then."""
        for job_id, head in self.model.promises:
            covers = self.model.jobs[job_id].covers
            assert covers is None or covers >= head

    def _no_message_leaves_the_live_view_uncovered(self, number: int) -> None:
        """Each message is in the newest result or follows it."""
        session, view = self.model.sessions[number], self.wait(self.stage.live(self.rows[number]))
        covered = 0 if session.live_job is None else self.model.jobs[session.live_job].covers or 0
        assert [stored.seq for stored in view.messages] == list(range(covered + 1, session.head + 1))

    def teardown(self) -> None:
        """Whatever has happened: when nothing goes wrong any more, every accepted job ends."""
        for _ in range(MAX_ROUNDS):
            for job in filter(running, self.model.jobs.values()):
                self._expire(job)
            self.reap()
            for job in filter(waiting, self.model.jobs.values()):
                self._wake(job)
                self._claim(job, OWNERS[0])
                if running(job):
                    self._commit(job, "succeeded")
            if all(job.is_terminal for job in self.model.jobs.values()):
                break
        self.rows_are_as_the_model_says()
        assert all(job.is_terminal for job in self.model.jobs.values())


def test_the_queue_keeps_its_promises_in_any_order_of_events(module_database_url: str) -> None:
    """At most one active and one waiting job, results of current leases only, terminal for ever, bounded, all end."""
    loop = asyncio.new_event_loop()
    database = Database(module_database_url, pool_size=2)

    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(loop, database)

    limits = settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=SLOW)
    try:
        run_state_machine_as_test(Machine, settings=limits)
    finally:
        loop.run_until_complete(database.close())
        loop.close()
