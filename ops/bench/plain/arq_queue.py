"""The plain job on arq. `python arq_queue.py work`, or `enqueue RUN JOBS KINDS`, which prints when it began."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import work
from arq import create_pool, run_worker
from arq.connections import RedisSettings

SLOTS = 300
REDIS = RedisSettings.from_dsn(os.environ["PLAIN_REDIS_URL"])


async def started(context: dict[str, Any]) -> None:
    """arq: the worker starts."""
    context["open"] = AsyncExitStack()
    context["world"] = await context["open"].enter_async_context(work.world())
    Path(os.environ["PLAIN_READY_FILE"]).touch()


async def stopped(context: dict[str, Any]) -> None:
    """arq: the worker ends."""
    await context["open"].aclose()


async def compact(context: dict[str, Any], run: int, session: int, kind: int) -> None:
    """The task."""
    await work.compact(context["world"], run, session, kind)


class WorkerSettings:
    """arq's settings: everything that is not about speed is off."""

    functions = [compact]
    on_startup = started
    on_shutdown = stopped
    redis_settings = REDIS
    max_jobs = SLOTS
    job_timeout = 600
    keep_result = 0
    max_tries = 1
    poll_delay = 0.1
    log_results = False


async def enqueue(run: int, jobs: int, kinds: int) -> None:
    """All jobs of a run."""
    redis = await create_pool(REDIS)
    print(time.time(), flush=True)
    for session in range(jobs):
        await redis.enqueue_job("compact", run, session, session % kinds)
    await redis.aclose()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        asyncio.run(enqueue(*map(int, sys.argv[2:])))
    else:
        run_worker(WorkerSettings)
