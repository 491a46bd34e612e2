"""The plain job on taskiq. `python taskiq_queue.py work`, or `enqueue RUN JOBS KINDS`, which prints when it began."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import work
from taskiq import TaskiqEvents, TaskiqState
from taskiq.__main__ import main
from taskiq_redis import ListQueueBroker

SLOTS = 150  # of each process
PROCESSES = 2  # as many as cores: taskiq's own default

broker = ListQueueBroker(os.environ["PLAIN_REDIS_URL"])
_open = AsyncExitStack()


@broker.on_event(TaskiqEvents.WORKER_STARTUP)
async def started(state: TaskiqState) -> None:
    """taskiq: a worker process starts."""
    state.world = await _open.enter_async_context(work.world())
    Path(f"{os.environ['PLAIN_READY_FILE']}.{os.getpid()}").touch()
    ready = Path(os.environ["PLAIN_READY_FILE"])
    if len(list(ready.parent.glob(f"{ready.name}.*"))) == PROCESSES:
        ready.touch()


@broker.on_event(TaskiqEvents.WORKER_SHUTDOWN)
async def stopped(state: TaskiqState) -> None:
    """taskiq: it ends."""
    del state
    await _open.aclose()


@broker.task
async def compact(run: int, session: int, kind: int) -> None:
    """The task."""
    await work.compact(broker.state.world, run, session, kind)


async def enqueue(run: int, jobs: int, kinds: int) -> None:
    """All jobs of a run."""
    await broker.startup()
    print(time.time(), flush=True)
    for session in range(jobs):
        await compact.kiq(run, session, session % kinds)
    await broker.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        asyncio.run(enqueue(*map(int, sys.argv[2:])))
    else:
        sys.argv[1:] = [
            "worker",
            "taskiq_queue:broker",
            f"--workers={PROCESSES}",
            f"--max-async-tasks={SLOTS}",
            "--log-level=WARNING",
        ]
        main()
