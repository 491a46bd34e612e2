"""The client for code that does not await (Django, Flask, scripts): the async one on a private loop in a thread.

    with sync.Client(url, api_key) as client:
        job = client.compact_and_wait("agent-7", timeout_seconds=120)

Nothing is written twice: each method here is the async one, waited for. A client may be shared by threads, and is
usable after a fork (the child gets a thread and connections of its own).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

import httpx2

from compaction.client.agent_history import AgentHistory as AsyncHistory
from compaction.client.agent_history import AskAt
from compaction.client.client import Client as AsyncClient
from compaction.client.http import MAX_TRIES
from compaction.client.shapes import SessionFields

P = ParamSpec("P")
T = TypeVar("T")
Subject = TypeVar("Subject")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="compactd-client", daemon=True)
        self._thread.start()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives. An interrupt of the caller ends the work too."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Waited(Generic[Subject]):
    """Runs what belongs to an async subject; the subject and its loop are made at the first call in each process."""

    def __init__(self, make: Callable[[], Subject]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: _Loop | None = None
        self._subject: Subject | None = None

    def get(self) -> tuple[_Loop, Subject]:
        with self._lock:
            if self._loop is None or self._subject is None or self._pid != os.getpid():
                self._pid, self._loop, self._subject = os.getpid(), _Loop(), self._make()
            return self._loop, self._subject

    def close(self, end: Callable[[Subject], Coroutine[Any, Any, None]]) -> None:
        with self._lock:
            if self._loop is not None and self._subject is not None and self._pid == os.getpid():
                self._loop.wait_for(end(self._subject))
                self._loop.close()
            self._loop = self._subject = None


def _waiting(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """The async client's method, waited for."""

    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        loop, client = self._waited.get()
        return loop.wait_for(method(client, *args, **kwargs))

    return _named(call, method)


def _stepping(
    method: Callable[Concatenate[AsyncClient, P], AsyncIterator[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """The async client's iteration, each step waited for."""

    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        loop, client = self._waited.get()
        steps = method(client, *args, **kwargs)
        try:
            while True:
                try:
                    one = loop.wait_for(_next(steps))
                except StopAsyncIteration:
                    return
                yield one
        finally:
            loop.wait_for(_closed(steps))

    return _named(call, method)


async def _next(steps: AsyncIterator[T]) -> T:
    return await anext(steps)


async def _closed(steps: AsyncIterator[Any]) -> None:
    close = getattr(steps, "aclose", None)
    if close is not None:
        await close()


def _named(call: Callable[P, T], method: Callable[..., Any]) -> Callable[P, T]:
    """`call` under the name and with the words of `method`."""
    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class HistoryOptions(SessionFields, total=False):
    """What an AgentHistory takes beside client and session."""

    ask_at: AskAt
    patience_seconds: float
    full_seconds: float


class Client:
    """Speaks to one compactd; see `compaction.client.Client` for what each method does."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        max_tries: int = MAX_TRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._waited = _Waited(lambda: AsyncClient(url, api_key, max_tries=max_tries, transport=transport))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread; a later call would open them again."""
        self._waited.close(AsyncClient.close)

    readiness = _waiting(AsyncClient.readiness)
    clock_ahead_seconds = _waiting(AsyncClient.clock_ahead_seconds)
    put_session = _waiting(AsyncClient.put_session)
    session = _waiting(AsyncClient.session)
    erase_session = _waiting(AsyncClient.erase_session)
    context = _waiting(AsyncClient.context)
    append = _waiting(AsyncClient.append)
    messages = _waiting(AsyncClient.messages)
    import_transcript = _waiting(AsyncClient.import_transcript)
    enqueue = _waiting(AsyncClient.enqueue)
    job = _waiting(AsyncClient.job)
    watch = _stepping(AsyncClient.watch)
    wait = _waiting(AsyncClient.wait)
    compact_and_wait = _waiting(AsyncClient.compact_and_wait)
    iter_events = _stepping(AsyncClient.iter_events)
    result = _waiting(AsyncClient.result)
    apply = _waiting(AsyncClient.apply)
    apply_hash = _waiting(AsyncClient.apply_hash)
    jobs = _waiting(AsyncClient.jobs)
    cancel = _waiting(AsyncClient.cancel)
    retry = _waiting(AsyncClient.retry)
    breaker = _waiting(AsyncClient.breaker)
    reset_breaker = _waiting(AsyncClient.reset_breaker)

    def history(self, session_id: str, **options: Unpack[HistoryOptions]) -> AgentHistory:
        """The history of an agent's loop, kept small while it goes on."""
        return AgentHistory(self, session_id, **options)


class AgentHistory:
    """`compaction.client.AgentHistory` for a loop that does not await."""

    def __init__(self, client: Client, session_id: str, **options: Unpack[HistoryOptions]) -> None:
        self._loop, speaking = client._waited.get()  # noqa: SLF001 - two faces of one facade
        self.kept = AsyncHistory(speaking, session_id, **options)

    def load(self) -> list[dict[str, Any]]:
        """The history as the service has it, ready to send."""
        return self._loop.wait_for(self.kept.load())

    def keep(self, messages: list[Any], reply: object = None) -> list[Any]:
        """The list to send to the model now; `compaction.client.AgentHistory.keep` says more."""
        return self._loop.wait_for(self.kept.keep(messages, reply))
