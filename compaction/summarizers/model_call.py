"""One HTTP exchange with the model's API: what was sent, what came back, and what may be told about it afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import httpx2

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.errors import ProviderError
from compaction.ports import Progress
from compaction.summarizers import call_failures
from compaction.summarizers.provider_errors import Failure, error_for
from compaction.summarizers.reply_stream import ReplyReader
from compaction.summarizers.request_body import Upload
from compaction.summarizers.transport import held_back
from compaction.summarizers.watchdog import Deadlines, Watchdog

MAX_ERROR_BYTES = 256 * 1024  # of an error body that are read; the classifier looks at 20,000 characters
MAX_JSON_BYTES = 8 * 1024 * 1024  # of a reply that comes whole: a text of 1 MiB, and thinking that may be longer
_FIRST_ERROR_STATUS = 400

# A packet costs 50 µs on its way through event loop, transport and HTTP parser, ten times what its deltas cost us.
# Nobody watches a summary word by word, so a stream that has begun to trickle is taken in gulps, small ones first.
FIRST_GULP_SECONDS = 0.05  # a short answer is not held up by more
GULP_SECONDS = 0.25  # twenty-five deltas of a fast model; progress is told once a second
WAITED_SECONDS = 0.005  # what lies in the buffer already comes within microseconds


@dataclass(slots=True)
class ModelCall:
    """A call on its way. Its bytes leave with the last piece sent; of the reply it keeps the headers."""

    path: str
    upload: Upload
    betas: tuple[str, ...]
    deadlines: Deadlines
    dog: Watchdog = field(init=False)
    reply_headers: Mapping[str, str] | None = None  # names in lower case; None until a reply began
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.dog = Watchdog(self.deadlines)

    @property
    def request_id(self) -> str | None:
        """The provider's id, once a reply began."""
        return Failure(status=None, headers=self.reply_headers or {}).request_id

    def pieces(self) -> AsyncIterator[bytes]:
        """The body on its way out; the watchdog sees each piece, and who waits for the reply hears of the last one."""
        return self.upload.pieces(self.dog.seen, self._sent)

    def _sent(self) -> None:
        if self.progress is not None:
            self.progress.characters(0)

    def headers(self) -> dict[str, str]:
        """What the SDK does not know to send: the length (the body is a generator) and the betas."""
        named = {"content-length": str(self.upload.size)}
        return named | {"anthropic-beta": ",".join(self.betas)} if self.betas else named

    def refused(self, status: int, body: Json | str | bytes | None) -> ProviderError:
        """The error that a refusal means."""
        failure = Failure(status=status, headers=self.reply_headers or {}, body=body, sent_bytes=self.upload.size)
        return error_for(failure, now_seconds=time.time())

    async def read_reply(self, response: httpx2.Response, reader: ReplyReader, progress: Progress) -> None:
        """Feeds the reply to `reader`, streamed or whole, until it ends or the reader has a problem with it."""
        if "json" in response.headers.get("content-type", "").lower():  # a gateway that does not stream
            reader.take_message(await self.read_json(response))
            progress.characters(reader.characters)
            return
        woke, gulp_seconds = self.dog.seen(), 0.0
        async with contextlib.aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                now = self.dog.seen()
                reader.feed(chunk)
                progress.characters(reader.characters)
                if reader.problem is not None:
                    return
                self.dog.allow(self.deadlines.ending_seconds if reader.done else self.deadlines.idle_seconds)
                if reader.done or not (gulp_seconds or now - woke > WAITED_SECONDS):
                    continue
                gulp_seconds = min(GULP_SECONDS, 2 * gulp_seconds or FIRST_GULP_SECONDS)
                with held_back(response):
                    await asyncio.sleep(gulp_seconds)
                woke = self.dog.seen()

    async def read_json(self, response: httpx2.Response) -> Json:
        """The whole body as JSON; None when it is none or too large."""
        body = bytearray()
        async with contextlib.aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                self.dog.seen()
                body += chunk
                if len(body) > MAX_JSON_BYTES:
                    return None
        try:
            return jsonbytes.decode(bytes(body))
        except ValueError:
            return None

    def verdict(self, reader: ReplyReader, max_text_bytes: int) -> ProviderError:
        """Why what the reader holds is no reply."""
        if reader.problem == "error_event":
            return self.refused(200, reader.error_body)
        if reader.problem == "too_large":
            return call_failures.endless(max_text_bytes, request_id=self.request_id)
        if reader.problem == "malformed" or not reader.began:
            return call_failures.not_a_message(request_id=self.request_id)
        return call_failures.cut_off(request_id=self.request_id)


async def bound_error_body(response: httpx2.Response) -> None:
    """A response hook: the SDK reads error bodies whole, so a hostile one is cut before it does."""
    if response.status_code >= _FIRST_ERROR_STATUS and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Head(response.stream)


class _Head(httpx2.AsyncByteStream):
    """The first bytes of a stream."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = MAX_ERROR_BYTES
        async for chunk in self._stream:
            yield chunk[:room]
            room -= len(chunk)
            if room <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()
