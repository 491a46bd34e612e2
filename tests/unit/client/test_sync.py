from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from compaction.client import Client as AsyncClient
from compaction.client import Refused, sync

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
