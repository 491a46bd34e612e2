from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from compaction.client import Client, Happening, Refused, Unreachable, timeline

pytestmark = pytest.mark.anyio

RUNNING = {"id": "j1", "status": "running", "done": False}
DONE = {"id": "j1", "status": "succeeded", "done": True}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "POLL_SECONDS", 0.0)


def entry(number: int) -> dict[str, Any]:
    return {"id": number, "at": "2026-11-30T08:00:00Z", "type": f"event_{number}", "data": {"number": number}}


def frame(number: int) -> str:
    return f"id: {number}\nevent: event_{number}\ndata: {json.dumps(entry(number))}\n\n"


END = f"id: 3-end\nevent: end\ndata: {json.dumps(DONE)}\n\n"


class Breaking(httpx2.AsyncByteStream):
    """Some text, and then the connection breaks."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._text.encode()
        raise httpx2.ReadError("gone")


def streamed(content: str | httpx2.AsyncByteStream) -> httpx2.Response:
    headers = {"Content-Type": "text/event-stream"}
    if isinstance(content, str):
        return httpx2.Response(200, content=content.encode(), headers=headers)
    return httpx2.Response(200, stream=content, headers=headers)


async def happenings(*answers: httpx2.Response, **options: Any) -> tuple[list[Happening], list[httpx2.Request]]:  # noqa: ANN401 - options as they come
    left, requests = list(answers), []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return left.pop(0) if len(left) > 1 else left[0]

    async with Client("http://api", "ck_x", max_tries=1, transport=httpx2.MockTransport(answer)) as client:
        return [one async for one in client.iter_events("j1", **options)], requests


async def test_a_stream_is_told_frame_by_frame_until_the_end() -> None:
    stream = f"retry: 1000\n\n{frame(1)}event: job\ndata: {json.dumps(RUNNING)}\n\n: still here\n\n{END}"
    told, requests = await happenings(streamed(stream))
    assert [(one.type, one.id) for one in told] == [("event_1", "1"), ("job", None), ("end", "3-end")]
    assert told[0].data == {"number": 1}
    assert told[-1].data == DONE
    assert requests[0].headers["Accept"] == "text/event-stream"


async def test_a_broken_stream_is_taken_up_behind_the_last_entry() -> None:
    told, requests = await happenings(streamed(Breaking(frame(1) + frame(2))), streamed(frame(3) + END))
    assert [one.type for one in told] == ["event_1", "event_2", "event_3", "end"]
    assert [request.headers.get("Last-Event-ID") for request in requests] == [None, "2"]


async def test_half_a_frame_is_none() -> None:
    told, _ = await happenings(
        streamed(Breaking(frame(1) + "id: 2\nevent: event_2\ndata: {")), streamed(frame(2) + END)
    )
    assert [one.type for one in told] == ["event_1", "event_2", "end"]


async def test_one_may_go_on_behind_an_entry_and_after_the_end_nothing_follows() -> None:
    told, requests = await happenings(httpx2.Response(204), last_event_id="3-end")
    assert told == []
    assert requests[0].headers["Last-Event-ID"] == "3-end"


async def test_where_no_stream_comes_through_the_list_is_read_again_and_again() -> None:
    def page(*numbers: int) -> httpx2.Response:
        return httpx2.Response(200, json={"data": list(map(entry, numbers)), "next_cursor": None, "has_more": False})

    answers = [page(1), httpx2.Response(200, json=RUNNING), page(1), httpx2.Response(200, json=DONE), page(1, 2)]
    told, _ = await happenings(*answers)
    assert [one.type for one in told] == ["event_1", "job", "event_2", "end"]


async def test_a_job_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(Refused):
        await happenings(httpx2.Response(404, json={"code": "not_found"}))


async def test_a_stream_that_breaks_again_and_again_is_given_up() -> None:
    with pytest.raises(Unreachable):
        await happenings(*(streamed(Breaking("")) for _ in range(10)))
