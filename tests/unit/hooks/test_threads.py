from __future__ import annotations

import asyncio
import contextvars
import threading
from functools import partial

import pytest

from compaction.hooks.threads import Threads

pytestmark = pytest.mark.anyio

word = contextvars.ContextVar("word", default="nothing")


async def test_work_runs_in_a_daemon_thread_of_its_own_with_the_context_of_who_asked() -> None:
    word.set("something")
    thread, heard = await Threads("compactd-x", 1).run(lambda: (threading.current_thread(), word.get()))
    assert thread is not threading.main_thread()
    assert (thread.name, thread.daemon, heard) == ("compactd-x", True, "something")


async def test_what_work_raises_is_heard() -> None:
    with pytest.raises(ZeroDivisionError):
        await Threads("t", 1).run(lambda: 1 / 0)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, StopIteration])
async def test_an_error_that_would_end_the_loop_becomes_an_ordinary_one(error: type[BaseException]) -> None:
    def work() -> None:
        raise error

    with pytest.raises(RuntimeError, match=error.__name__):
        await Threads("t", 1).run(work)


async def test_no_more_calls_than_agreed_run_at_once_and_a_stuck_one_keeps_its_place() -> None:
    go = threading.Event()
    threads = Threads("t", 1)
    stuck = asyncio.create_task(threads.run(partial(go.wait, 60)))
    await asyncio.sleep(0)
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck
    following = asyncio.create_task(threads.run(lambda: "now"))
    done, _ = await asyncio.wait({following}, timeout=0.05)
    assert not done
    go.set()
    assert await following == "now"


async def test_without_a_thread_to_be_had_the_place_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = Threads("t", 1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            await threads.run(lambda: None)
    assert await threads.run(lambda: "free") == "free"


def test_a_thread_that_outlives_its_loop_ends_in_silence() -> None:
    go = threading.Event()

    async def start() -> None:
        task = asyncio.create_task(Threads("t", 1).run(partial(go.wait, 60)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(start())
    threads = [thread for thread in threading.enumerate() if thread.name == "t"]
    go.set()
    for thread in threads:
        thread.join(60)
    assert threads
