"""What the tests of the Claude summarizer share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import pytest

from compaction import errors
from compaction.ports import SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer

KEY = "sk-ant-canary-key-0001"
SECRET = "TRANSCRIPT-CANARY-7711"

MakeSummarizer = Callable[..., ClaudeSummarizer]
LOOPBACK = "127.0.0.1"


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def characters(self, count: int) -> None:
        self.counts.append(count)


class Marked(bytes):
    """Bytes that tell when they go."""

    marks: list[bool]

    def __new__(cls, data: bytes, marks: list[bool]) -> Self:
        made = super().__new__(cls, data)
        made.marks = marks
        return made

    def __del__(self) -> None:
        self.marks.append(True)


def plain_body(request: SummaryRequest) -> tuple[bytes, tuple[str, ...]]:
    """A body without `core.wire`: the tests here are about the call, not about what is in it."""
    turns = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_output_tokens, "stream": True}
    betas = ("beta-one", "beta-two") if request.kind == "shared_prefix" else ()
    return json.dumps(body | {"system": request.system_prompt, "messages": turns}).encode(), betas


async def failed(summarizer: ClaudeSummarizer, request: SummaryRequest) -> errors.ProviderError:
    """The error that the call must end with."""
    with pytest.raises(errors.ProviderError) as caught:
        await summarizer.summarize(request, Heard())
    return caught.value


@asynccontextmanager
async def raw_server(answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that reads a request's head and lets `answer` write whatever it likes."""
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with server:
        yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        tasks = [task for task in serving if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
