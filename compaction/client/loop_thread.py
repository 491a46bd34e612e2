"""An event loop in a thread of its own, for callers that do not await: they wait here, and are told when it ends."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from compaction.client.errors import Closed

END_SECONDS = 10.0  # for what is cancelled at the end; none of it waits for anything but the network
FORKED = "This iteration began in the parent process, before the fork. Begin it anew."

T = TypeVar("T")
Subject = TypeVar("Subject")


class LoopThread:
    """A running loop. Any thread may wait for its work."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._left: set[asyncio.Task[Any]] = set()  # ends of iterations; the loop itself holds tasks weakly
        self._is_closed = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="compactd-client", daemon=True)
        self._thread.start()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives. An interrupt of the caller ends the work too. Raises Closed when the loop is closed.

        On the loop's own thread nobody can wait for it: there the garbage collector ends iterations that somebody left,
        and their end is only begun. Raises Closed then, too.
        """
        if self._pid != os.getpid():
            work.close()
            raise Closed(FORKED)
        if threading.current_thread() is self._thread:
            self._left.add(task := self._loop.create_task(work))
            task.add_done_callback(self._left.discard)
            raise Closed
        with self._lock:
            if self._is_closed:
                work.close()
                raise Closed
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._waiting.add(future)
        try:
            return future.result()
        except CancelledError:
            if self._is_closed:
                raise Closed from None
            raise
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._waiting.discard(future)

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Ends everything that is waited for, then does `last`, then ends the thread."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()
        try:
            asyncio.run_coroutine_threadsafe(self._ended(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _ended(self, last: Coroutine[Any, Any, None]) -> None:
        work = asyncio.all_tasks() - {asyncio.current_task()}
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work, timeout=END_SECONDS)
        await self._loop.shutdown_asyncgens()  # iterations that somebody left in the middle
        await last


class Waited(Generic[Subject]):
    """An async subject and its loop, made at the first call in each process: neither survives a fork."""

    def __init__(self, make: Callable[[], Subject], end: Callable[[Subject], Coroutine[Any, Any, None]]) -> None:
        self._make = make
        self._end = end
        self._lock = threading.Lock()
        self._running: tuple[LoopThread, Subject] | None = None
        self._inherited: list[object] = []
        self._is_closed = False
        _ALL.add(self)

    def get(self) -> tuple[LoopThread, Subject]:
        """The loop and the subject of this process. Raises Closed."""
        with self._lock:
            if self._is_closed:
                raise Closed
            if self._running is None:
                subject = self._make()  # first: it may refuse
                self._running = (LoopThread(), subject)
            return self._running

    def close(self) -> None:
        """Ends the subject, the loop and whoever waits for it; `get` gives nothing any more."""
        with self._lock:
            running, self._running, self._is_closed = self._running, None, True
        if running is not None:
            loop, subject = running
            loop.close(self._end(subject))

    def forked(self) -> None:
        """This is a child: the thread is not here, and the lock may be held by one that is not here either.

        What the parent made is kept and never touched: its selector and its connections are the parent's, too.
        """
        self._lock = threading.Lock()
        self._inherited.append(self._running)
        self._running = None


_ALL: WeakSet[Waited[Any]] = WeakSet()


def _forked() -> None:
    for waited in _ALL:
        waited.forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)
