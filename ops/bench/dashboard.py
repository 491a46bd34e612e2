"""`make bench-dashboard`: every page of the dashboard on a service with a million jobs, against what is promised.

A real API process on a Postgres of its own, filled with a month of jobs of twenty tenants. The leader has
counted before, as in a service that runs. Pages are asked for one after the other, as people do; each is measured
to the last byte, for the operator who sees all tenants and for one tenant's.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2
import psycopg
from rich.console import Console

from compaction.core.boundary import Boundary
from compaction.core.messages import Message
from compaction.store import tallies
from compaction.store.engine import Database
from compaction.store.results import ResultBody, encode_body
from ops.bench.api_process import KEY, ApiProcess
from ops.bench.verdicts import most, told

JOBS, SESSIONS = 1_000_000, 10_000
ROUNDS = 25  # of all pages; the first one warms plans and caches
BOUND_MS = 300.0  # of each page, p95
TENANT = "team-7"
MESSAGES = 400  # of the session that is looked at, 2 KB each
FILLING = Path(__file__).with_name("dashboard_filling.sql")
COUNT_STEPS = 1_000  # of the leader; a week has 168

console = Console(stderr=True)


def main() -> int:
    """Prints a row for each page and a verdict; 1 when a page is slower than promised."""
    jobs = int(sys.argv[1]) if sys.argv[1:] else JOBS
    with ApiProcess() as api:
        with console.status(f"Filling a service with {jobs:,} jobs ..."):
            filled = _fill(api.postgres.url(), jobs)
        with console.status("Counting as the leader does ..."):
            asyncio.run(_count(api.database_url))
        url = f"http://127.0.0.1:{api.port}"
        with httpx2.Client(base_url=url, timeout=60) as client:
            name = _session(client)
            verdicts = []
            print(f"{'ms':44}{'p50':>9}{'p95':>9}")
            for who, key in (("all tenants", KEY), (TENANT, _key(client))):
                seconds = _measured(url, key, _pages(filled, name, own=who == TENANT))
                for page, times in seconds.items():
                    cuts = quantiles(times, n=20)
                    print(f"{f'{who}: {page}':44}{1000 * cuts[9]:>9.1f}{1000 * cuts[18]:>9.1f}")
                    verdicts.append(most(f"{who}: {page}, p95 ms", 1000 * cuts[18], BOUND_MS))
    return told(verdicts)


def _pages(filled: Mapping[str, str], name: str, *, own: bool) -> dict[str, str]:
    """The addresses, those with many rows behind them above all."""
    pages = {
        "overview": "",
        "failures, a day": "/failures",
        "failures, a month": "/failures?window=30d",
        "jobs": "/jobs",
        "jobs, failed": "/jobs?status=failed",
        "jobs, by code": "/jobs?code=timeout",
        "jobs, of a session": "/jobs?session=agent-6",
        "jobs, rare": "/jobs?trigger=manual&strategy=session_memory",
        "jobs, open, old": f"/jobs?open=1&before={filled['middle']}",
        "job, succeeded": f"/jobs/{filled['own_succeeded' if own else 'succeeded']}",
        "job, failed": f"/jobs/{filled['own_failed' if own else 'failed']}",
        "bulk, dry run": "/jobs/all?action=retry&status=failed",
        "bulk, cancel": "/jobs/all?action=cancel&status=queued",
        "sessions": "/sessions",
        "session": f"/session?tenant={TENANT}&name=agent-6" if own else f"/session?name={name}",
        "breakers": "/breakers",
        "audit": "/audit",
        "help": "/help",
    }
    return pages if own else pages | {"workers": "/workers", "jobs, a tenant's": f"/jobs?tenant={TENANT}&trigger=bulk"}


def _measured(url: str, key: str, pages: Mapping[str, str]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {page: [] for page in pages}
    with httpx2.Client(base_url=url, timeout=60) as client:
        _sign_in(client, key)
        for number in range(ROUNDS + 1):
            for page, address in pages.items():
                began = time.perf_counter()
                answer = client.get(f"/dashboard{address}")
                if number:
                    seconds[page].append(time.perf_counter() - began)
                if answer.status_code != 200:  # noqa: PLR2004 - an error page is no page
                    raise RuntimeError(f"{page} answered {answer.status_code}")
    return seconds


def _sign_in(client: httpx2.Client, key: str) -> None:
    form = client.get("/dashboard/sign-in").text
    found = re.search(r'name="csrf" value="([^"]+)"', form)
    if found is None:
        raise RuntimeError("the sign-in has no form")
    answer = client.post("/dashboard/sign-in", data={"csrf": found[1], "key": key})
    if answer.status_code != 303:  # noqa: PLR2004 - See Other: signed in
        raise RuntimeError(f"nobody could sign in: {answer.status_code}")


def _key(client: httpx2.Client) -> str:
    wanted = {"tenant": TENANT, "scopes": ["ops", "read"]}
    answer = client.post("/v1/api-keys", json=wanted, headers={"Authorization": f"Bearer {KEY}"})
    key: str = answer.json()["key"]
    return key


def _session(client: httpx2.Client) -> str:
    """A session with messages, of the operator's own tenant."""
    headers = {"Authorization": f"Bearer {KEY}"}
    text = "a line of what was said\n" * 85
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {text}"} for n in range(MESSAGES)]
    client.put("/v1/sessions/talk", json={"model": "claude-haiku-4-5"}, headers=headers)
    client.post("/v1/sessions/talk/messages", json={"messages": messages}, headers=headers)
    return "talk"


def _fill(url: str, jobs: int) -> dict[str, str]:
    values = {":sessions": str(SESSIONS), ":jobs": str(jobs), ":body": _body().hex()}
    statements = FILLING.read_text(encoding="utf-8")
    for name, value in values.items():
        statements = statements.replace(name, value)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())
        connection.execute("VACUUM ANALYZE")
        return _named(connection)


def _named(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Ids of jobs that pages are asked for, and a moment in the middle of the month."""
    named = {"middle": "2000-01-01T00:00"}
    rows = connection.execute("SELECT to_char(now() - interval '15 days', 'YYYY-MM-DD\"T\"HH24:MI')")
    named["middle"] = str(next(iter(rows))[0])
    for status in ("succeeded", "failed"):
        query = "SELECT j.id FROM jobs j JOIN tenants t ON t.id = tenant_id WHERE status = %s AND (%s OR name = %s)"
        for mark, everybody in (("", True), ("own_", False)):
            found = connection.execute(query, (status, everybody, TENANT)).fetchone()
            named[mark + status] = str(found[0]) if found else ""
    return named


def _body() -> bytes:
    """A result as compactions leave it: a summary of 12 KB, the size of a real one."""
    boundary = Boundary(
        uuid="b", trigger="auto", strategy="fresh", pre_tokens=150_000, covers_through_seq=20, job_id="j"
    )
    summary = Message(role="user", content="The state of the work. " * 500, is_compact_summary=True)
    return encode_body(ResultBody(boundary=boundary.message(), summary=(summary,)))


async def _count(url: str) -> None:
    database = Database(url, pool_size=1)
    try:
        for _ in range(COUNT_STEPS):
            async with database.begin() as conn:
                if not await tallies.count_next(conn):
                    return
    finally:
        await database.close()


if __name__ == "__main__":
    sys.exit(main())
