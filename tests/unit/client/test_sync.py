from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from compaction.client import BadAddress, Closed, Refused, sync
from compaction.client import Client as AsyncClient

JOB = {"id": "j1", "status": "queued", "done": False}
DONE = {"id": "j1", "status": "succeeded", "done": True}


def client(answer: Callable[[httpx2.Request], httpx2.Response]) -> sync.Client:
    return sync.Client("http://api", "ck_x", transport=httpx2.MockTransport(answer))


def test_every_call_of_the_async_client_is_there_with_its_words() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}

    assert calls(sync.Client) - calls(AsyncClient) == {"history"}
    assert calls(AsyncClient) - calls(sync.Client) == set()
    assert sync.Client.enqueue.__doc__ == AsyncClient.enqueue.__doc__


def test_a_call_gives_what_the_async_one_gives_and_raises_what_it_raises() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(202, json=JOB) if request.method == "POST" else httpx2.Response(404, json={})

    with client(answer) as speaking:
        assert speaking.enqueue("s1", trigger="manual")["id"] == "j1"
        with pytest.raises(Refused):
            speaking.job("j1")


def test_an_iteration_can_be_left_in_the_middle() -> None:
    with client(lambda _request: httpx2.Response(200, json=JOB)) as speaking:
        for job in speaking.watch("j1"):
            assert job["id"] == "j1"
            break
    with client(lambda _request: httpx2.Response(200, json=DONE)) as speaking:
        assert [job["done"] for job in speaking.watch("j1")] == [True]


def test_an_iteration_that_the_collector_ends_on_the_loops_own_thread_stops_nobody() -> None:
    with client(lambda _request: httpx2.Response(200, json=JOB)) as speaking:
        left: dict[str, Any] = {"steps": speaking.watch("j1")}
        left["itself"] = left  # a cycle, so that only the collector finds it
        next(left["steps"])
        gc.disable()
        try:
            del left
            loop, _ = speaking._waited.get()
            collected = threading.Event()
            loop._loop.call_soon_threadsafe(gc.collect)
            loop._loop.call_soon_threadsafe(collected.set)
            assert collected.wait(30)
        finally:
            gc.enable()
        assert speaking.job("j1")["id"] == "j1"


def test_threads_share_one_client() -> None:
    seen: list[Any] = []
    with client(lambda _request: httpx2.Response(200, json=JOB)) as speaking:
        threads = [threading.Thread(target=lambda: seen.append(speaking.job("j1"))) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [JOB] * 10


def test_closing_ends_the_thread() -> None:
    def named() -> int:
        return sum(thread.name == "compactd-client" for thread in threading.enumerate())

    with client(lambda _request: httpx2.Response(200, json=JOB)) as speaking:
        assert named() == 0
        speaking.job("j1")
        assert named() == 1
    assert named() == 0


class Silence:
    """An API that takes every request and never answers; `asked` is set once it has been asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def __call__(self, _request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class Endless(httpx2.AsyncByteStream):
    """A stream of events that begins and never goes on."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'event: job\ndata: {"id": "j1"}\n\n'
        self.asked.set()
        await asyncio.Event().wait()


def closed_while(speaking: sync.Client, asked: threading.Event, work: Callable[[], object]) -> list[BaseException]:
    """What `work` raises in another thread, which waits in it while the client is closed."""
    raised: list[BaseException] = []

    def caught() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            raised.append(error)

    thread = threading.Thread(target=caught, daemon=True)
    thread.start()
    assert asked.wait(60)
    speaking.close()
    thread.join(60)
    assert not thread.is_alive()
    return raised


def test_closing_ends_a_thread_that_waits() -> None:
    silent = Silence()
    speaking = sync.Client("http://api", "ck_x", transport=httpx2.MockTransport(silent))
    (error,) = closed_while(speaking, silent.asked, lambda: speaking.wait("j1"))
    assert isinstance(error, Closed)


def test_closing_ends_a_thread_that_follows_events() -> None:
    stream = Endless()
    headers = {"Content-Type": "text/event-stream"}
    speaking = client(lambda _request: httpx2.Response(200, headers=headers, stream=stream))
    (error,) = closed_while(speaking, stream.asked, lambda: list(speaking.iter_events("j1")))
    assert isinstance(error, Closed)


def test_closing_ends_an_agents_loop_that_waits() -> None:
    silent = Silence()
    speaking = sync.Client("http://api", "ck_x", transport=httpx2.MockTransport(silent))
    history = speaking.history("s1", model="m", patience_seconds=600)
    said = [{"role": "user", "content": "Hello."}]
    (error,) = closed_while(speaking, silent.asked, lambda: history.keep(said))
    assert isinstance(error, Closed)


def test_an_iteration_that_was_left_in_the_middle_is_closed_without_a_word() -> None:
    with client(lambda _request: httpx2.Response(200, json=JOB)) as speaking:
        steps = speaking.watch("j1")
        next(steps)
    with pytest.raises(Closed):
        next(steps)


def test_after_closing_every_call_says_so() -> None:
    speaking = client(lambda _request: httpx2.Response(200, json=JOB))
    history = speaking.history("s1", model="m")
    speaking.close()
    speaking.close()
    for call in (lambda: speaking.job("j1"), lambda: history.keep([]), history.load, lambda: speaking.history("s2")):
        with pytest.raises(Closed, match="Make a new one"):
            call()
    assert history.kept.session_id == "s1"


def in_a_child(work: Callable[[], object]) -> object:
    """What `work` gives in a forked child."""
    given, taken = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(taken, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(taken)
    with os.fdopen(given, "rb") as told:
        text = told.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns of threads; they are the point
def test_a_forked_child_goes_on_with_a_thread_of_its_own() -> None:
    stored = {"id": "s1", "model": "m", "head_seq": 0, "live_job_id": None}

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "PUT":
            return httpx2.Response(200, json=stored)
        if request.url.path.endswith("/messages"):
            return httpx2.Response(200, json={"data": []})
        return httpx2.Response(200, json=JOB)

    with client(answer) as speaking:
        history = speaking.history("s1", model="m")
        steps = speaking.watch("j1")
        assert (next(steps), history.load()) == (JOB, [])

        def going_on() -> object:
            try:
                next(steps)
            except Closed as error:
                return speaking.job("j1"), history.load(), str(error)
            return None

        assert in_a_child(going_on) == [
            JOB,
            [],
            "This iteration began in the parent process, before the fork. Begin it anew.",
        ]
        assert speaking.job("j1") == JOB


@pytest.mark.parametrize(
    ("url", "api_key", "words"),
    [
        ("127.0.0.1:8080", "ck_x", "url must begin with http:// or https://"),
        ("localhost:8080", "ck_x", "url must begin with http:// or https://"),
        ("http://api\n", "ck_x", "url has a line break"),
        ("http://api:99999", "ck_x", "url has a port that is not from 1 to 65535"),
        ("http://api:0", "ck_x", "url has a port"),
        ("http://api:none", "ck_x", "url is no address"),
        ("http://", "ck_x", "url names no host"),
        ("http://[", "ck_x", "url names no host"),
        ("http://a b", "ck_x", "url names no host"),
        ("http://api?key=1", "ck_x", "url must end with the host, the port or a path"),
        ("", "ck_x", "url must begin with"),
        ("http://api", "", "api_key is empty"),
        ("http://api", "ck_secret\n", "api_key has a line break"),
        ("http://api", "ck_secr\u00e9t", "api_key has a line break, a blank or another character"),
        ("http://api", "ck secret", "api_key has a line break, a blank"),
    ],
)
def test_what_cannot_be_an_address_or_a_key_is_told_at_once_and_never_repeated(
    url: str, api_key: str, words: str
) -> None:
    for kind in (sync.Client, AsyncClient):
        with pytest.raises(BadAddress) as caught:
            kind(url, api_key)
        assert words in str(caught.value)
        assert "secr" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://api", "https://a.b:8443/compactd/", "http://[::1]:80", "http://\u00fc.de"])
def test_an_address_may_have_a_port_and_a_path(url: str) -> None:
    sync.Client(url, "ck_x").close()
