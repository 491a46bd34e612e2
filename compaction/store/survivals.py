"""What a living worker says of leases that it does not run any more: that it has not crashed, and that others may.

A lease ends when nobody renews it, whatever the reason: the worker died, was frozen, or could not reach Postgres. Only
the first may count against a job, so whoever is still there afterwards says so (`forgive`), and need not wait for the
end of what it still keeps (`hand_back`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Double, Select, Text, and_, bindparam, case, func, or_, select, update
from sqlalchemy import literal_column as words
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.job_rows import RUNNING, status_is
from compaction.store.tables import attempts, jobs

_OWNER = bindparam("b_owner", type_=Text)
_LOST = bindparam("b_lost", type_=ARRAY(BigInteger))
_HELD = bindparam("b_held", type_=ARRAY(BigInteger))
_THEIRS = (  # both columns of the primary key: there are millions of attempts
    attempts.c.job_id == func.any(bindparam("b_job_ids", type_=ARRAY(attempts.c.job_id.type))),
    attempts.c.lease_token == func.any(_LOST),
)
_ACTIVE = status_is(jobs, "running", "retrying")
_SETTLE: ColumnElement[Any] = bindparam("b_settle_seconds", type_=Double) * words("interval '1 second'")


def _hand_back() -> Select[Any]:
    """Running rows of ours that we do not run: given up by us, or claimed by a statement whose answer never came."""
    lost = jobs.c.lease_token == func.any(_LOST)
    unheard = and_(attempts.c.started_at < func.now() - _SETTLE, jobs.c.lease_token != func.all(_HELD))
    again = or_(and_(lost, jobs.c.attempt < jobs.c.max_attempts), and_(~lost, unheard))
    picked = (
        select(jobs.c.id, jobs.c.lease_token, lost.label("ran"))
        .join(attempts, and_(attempts.c.job_id == jobs.c.id, attempts.c.lease_token == jobs.c.lease_token))
        .where(RUNNING, jobs.c.lease_owner == _OWNER, jobs.c.cancel_requested_at.is_(None), again)
        .with_for_update(skip_locked=True, key_share=True, of=jobs)
        .cte("picked")
    )
    back = (
        update(jobs)
        .where(jobs.c.id == picked.c.id)
        .values(
            status=words("'retrying'"),
            attempt=jobs.c.attempt - case((picked.c.ran, words("0")), else_=words("1")),
            not_before=func.now(),
            lease_token=None,
            lease_owner=None,
            lease_expires_at=None,
            dispatched_at=None,
        )
        .returning(jobs.c.id, picked.c.lease_token)
        .cte("back")
    )
    closed = (
        update(attempts)
        .where(attempts.c.job_id == back.c.id, attempts.c.lease_token == back.c.lease_token)
        .values(ended_at=func.now(), outcome=words("'fenced'"))
    )
    return select(back.c.lease_token).add_cte(closed.cte("closed"))


def _forgive() -> Select[Any]:
    """Lost leases that the reaper took for crashes; the outcome of the attempt says that it was told."""
    told = (
        update(attempts)
        .where(
            *_THEIRS,
            attempts.c.owner == _OWNER,
            attempts.c.outcome == words("'expired'"),
            attempts.c.job_id == jobs.c.id,
            _ACTIVE,
        )
        .values(outcome=words("'fenced'"))
        .returning(attempts.c.job_id, attempts.c.lease_token)
        .cte("told")
    )
    forgiven = (
        update(jobs)
        .where(jobs.c.id == told.c.job_id, jobs.c.crashes > words("0"), _ACTIVE)
        .values(crashes=jobs.c.crashes - words("1"))
    )
    return select(told.c.lease_token).add_cte(forgiven.cte("forgiven"))


_HAND_BACK = _hand_back()
_FORGIVE = _forgive()
_OPEN = select(attempts.c.lease_token).where(*_THEIRS, attempts.c.outcome.is_(None))


async def hand_back(
    conn: AsyncConnection, owner: str, held: Collection[int], lost: Collection[int], *, settle_seconds: float
) -> list[int]:
    """Lets others run at once what the owner's leases still keep; returns the tokens.

    `held` are the tokens that it runs, `lost` those that it gave up: these attempts count, unless they were the last,
    which are left to the reaper. Of neither kind are leases whose claim was never answered; they cost nothing, and are
    known by an age of `settle_seconds`, which must be longer than a claim takes.
    """
    values = {"b_owner": owner, "b_held": list(held), "b_lost": list(lost), "b_settle_seconds": settle_seconds}
    return list((await conn.execute(_HAND_BACK, values)).scalars())


async def forgive(conn: AsyncConnection, owner: str, lost: Mapping[int, str]) -> frozenset[int]:
    """Takes back the crashes that the reaper counted for `lost`, job ids by token.

    Returns the tokens of those that nobody has judged yet: ask again. A job that has ended by now stays as it ended.
    """
    values = {"b_job_ids": sorted(set(lost.values())), "b_lost": list(lost)}
    await conn.execute(_FORGIVE, values | {"b_owner": owner})
    return frozenset((await conn.execute(_OPEN, values)).scalars())
