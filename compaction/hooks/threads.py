"""Runs plain functions in threads that nobody has to wait for.

`asyncio.to_thread` shares a handful of threads with the whole process, name resolution of the model's API included, and
the interpreter waits for them at its end: a few stuck hooks would stop a worker. Here each call has a thread of its own
that ends with the process, and each user of this class its own number of places.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """Up to `limit` calls at once; one that never ends keeps its place. For one event loop."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._free = asyncio.Semaphore(limit)

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, run in a thread. Cancelled, it stops waiting and the thread goes on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        call = partial(contextvars.copy_context().run, work)

        def land(end: Callable[[], None]) -> None:
            self._free.release()
            if not future.done():  # else nobody waited so long
                end()

        def turn() -> None:
            end = _end_of(call, future)
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends, and nobody waits
                loop.call_soon_threadsafe(land, end)

        await self._free.acquire()
        try:
            threading.Thread(target=turn, name=self._name, daemon=True).start()
        except BaseException:  # no thread to be had: the place is free again
            self._free.release()
            raise
        return await future


def _end_of(call: Callable[[], T], future: asyncio.Future[T]) -> Callable[[], None]:
    """Makes the call; how to end the future, to be done on its loop."""
    try:
        return partial(future.set_result, call())
    except StopIteration as error:  # no coroutine can raise it
        return partial(future.set_exception, _renamed(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits for it hears of it
        return partial(future.set_exception, error)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a thread must not end the loop
        return partial(future.set_exception, _renamed(error))


def _renamed(error: BaseException) -> RuntimeError:
    return RuntimeError(f"{type(error).__name__} in a thread")
