"""The client for code that does not await (Django, Flask, scripts): the async one on a private loop in a thread.

    with sync.Client(url, api_key) as client:
        job = client.compact_and_wait("agent-7", timeout_seconds=120)

Nothing is written twice: each method here is the async one, waited for. A client may be shared by threads, and is
usable after a fork (the child gets a thread and connections of its own). Closing it ends whoever waits with Closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

import httpx2

from compaction.client import address
from compaction.client.agent_history import AgentHistory as AsyncHistory
from compaction.client.agent_history import AskAt
from compaction.client.client import Client as AsyncClient
from compaction.client.errors import Closed
from compaction.client.http import MAX_TRIES
from compaction.client.loop_thread import LoopThread, Waited
from compaction.client.shapes import AnthropicRequest, ChatRequest, Result, SessionFields

P = ParamSpec("P")
T = TypeVar("T")


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
            with contextlib.suppress(Closed):  # then it has ended with everything else
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


class ResultCall(Protocol):
    """`result`, waited for: what each format gives."""

    @overload
    def __call__(self, job_id: str, format: Literal["envelopes"] = ...) -> Result: ...

    @overload
    def __call__(self, job_id: str, format: Literal["anthropic"]) -> AnthropicRequest: ...

    @overload
    def __call__(self, job_id: str, format: Literal["openai"]) -> ChatRequest: ...

    @overload
    def __call__(self, job_id: str, format: Literal["claude_code"]) -> bytes: ...


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
        address.check_url(url)
        address.check_api_key(api_key)
        make = partial(AsyncClient, url, api_key, max_tries=max_tries, transport=transport)
        self._waited = Waited(make, AsyncClient.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread. Calls that wait, and later ones, raise Closed."""
        self._waited.close()

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
    enqueue_inline = _waiting(AsyncClient.enqueue_inline)
    job = _waiting(AsyncClient.job)
    watch = _stepping(AsyncClient.watch)
    wait = _waiting(AsyncClient.wait)
    compact_and_wait = _waiting(AsyncClient.compact_and_wait)
    compact_inline = _waiting(AsyncClient.compact_inline)
    iter_events = _stepping(AsyncClient.iter_events)
    result = cast("ResultCall", _waiting(AsyncClient.result))
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
    """`compaction.client.AgentHistory` for a loop that does not await; `kept` is that one.

    After a fork the child goes on with one of its own, which finds the session as a process that starts anew does.
    """

    def __init__(self, client: Client, session_id: str, **options: Unpack[HistoryOptions]) -> None:
        self._waited = client._waited  # noqa: SLF001 - two faces of one facade
        self._options = options
        _, self._speaking = self._waited.get()
        self.kept = AsyncHistory(self._speaking, session_id, **options)

    def load(self) -> list[dict[str, Any]]:
        """The history as the service has it, ready to send."""
        loop, kept = self._here()
        return loop.wait_for(kept.load())

    def keep(self, messages: list[Any], reply: object = None) -> list[Any]:
        """The list to send to the model now; `compaction.client.AgentHistory.keep` says more."""
        loop, kept = self._here()
        return loop.wait_for(kept.keep(messages, reply))

    def _here(self) -> tuple[LoopThread, AsyncHistory]:
        loop, speaking = self._waited.get()
        if speaking is not self._speaking:
            self._speaking = speaking
            self.kept = AsyncHistory(speaking, self.kept.session_id, **self._options)
        return loop, self.kept
