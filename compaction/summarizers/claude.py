"""Claude as the summarizer, through the official SDK: auth, headers and errors are the SDK's; body, stream, time ours.

`AsyncAnthropic.post(cast_to=httpx2.Response, stream=True)` sends ready-made bytes and hands out the open response,
which costs a tenth of the SDK's typed stream (facts/performance.md). The SDK never retries here (a job's retry is a row
in Postgres) and never logs below WARNING (its debug log prints whole transcripts). Errors are made from plain facts and
raised outside of `except`, so that none drags a request, a response or the key along.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2

from compaction.core import wire
from compaction.core.jsonbytes import Json
from compaction.errors import ProviderError
from compaction.ports import Progress, SummaryReply, SummaryRequest
from compaction.summarizers import call_failures
from compaction.summarizers.model_call import ModelCall, bound_error_body
from compaction.summarizers.model_directory import ModelDirectory
from compaction.summarizers.models import ModelLimits
from compaction.summarizers.reply_stream import MAX_TEXT_BYTES, ReplyReader
from compaction.summarizers.request_body import Upload, counting, streaming
from compaction.summarizers.transport import AiohttpTransport
from compaction.summarizers.watchdog import Deadlines

if TYPE_CHECKING:
    import anthropic

NAME = "claude"
PUBLIC_URL = "https://api.anthropic.com"  # the SDK's own default
MAX_CONNECTIONS = 1_000  # the SDK's own limit; one connection per call in flight
MAX_IDLE_SECONDS = 5.0  # the SDK's own limit; many gateways close what is idle for longer
MODELS_API_SECONDS = 10.0  # a look-up that is not there in time is answered from the table

BuildBody = Callable[[SummaryRequest], tuple[bytes, tuple[str, ...]]]  # the request's body and its beta headers

_LOGGERS = ("anthropic", "httpx2", "httpcore2", "aiohttp")
_NOT_OFFERED = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
_BROKEN = (TimeoutError, OSError, httpx2.HTTPError, httpx2.StreamError)  # how an open reply goes wrong


def build_body(request: SummaryRequest) -> tuple[bytes, tuple[str, ...]]:
    """The body that `core.wire` makes of the request, and the betas it needs. Raises wire.PrefixNotShareable."""
    if request.kind == "shared_prefix":
        return wire.shared_prefix_body(request)
    return wire.fresh_body(request), ()


class ClaudeSummarizer:
    """Implements ports.Summarizer over the Messages API. One per process; its client belongs to the running loop.

    What is not given the SDK finds where it always does (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, profiles). Raises only
    errors.ProviderError, beside what building the body raises and asyncio.CancelledError.
    """

    def __init__(  # noqa: PLR0913 - settings, each with a default
        self,
        *,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        deadlines: Deadlines | None = None,
        max_reply_bytes: int = MAX_TEXT_BYTES,
        max_connections: int = MAX_CONNECTIONS,
        build_body: BuildBody = build_body,
    ) -> None:
        self._sdk: Any = importlib.import_module("anthropic")  # 2 s and 70 MB: only who calls a model pays
        _silence_logs()
        self._api_key = api_key or None  # compose files hand out empty strings for what is not set
        self._auth_token = auth_token or None
        self._base_url = base_url or _address_for_an_empty_one()
        self._deadlines = deadlines or Deadlines()
        self._max_reply_bytes = max_reply_bytes
        self._max_connections = max_connections
        self._build = build_body
        self._open: tuple[asyncio.AbstractEventLoop, anthropic.AsyncAnthropic] | None = None
        self._directory = ModelDirectory(self._ask_limits, time.monotonic)

    @property
    def name(self) -> str:
        """The summarizer's name in settings and results."""
        return NAME

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The model's answer, not judged yet. `progress.characters` is called with each piece that arrives."""
        model = request.model
        call = self._call("/v1/messages", request, streaming)
        call.progress = progress
        del request  # hundreds of calls wait here, and nothing of a transcript may wait with them
        reader = ReplyReader(max_text_bytes=self._max_reply_bytes)
        failure = await self._exchange(call, lambda response: call.read_reply(response, reader, progress))
        if reader.problem is not None or reader.stop_reason is None:
            raise failure or call.verdict(reader, self._max_reply_bytes)
        return SummaryReply(  # whole, even if the connection broke after its last word
            text=reader.text,
            stop_reason=reader.stop_reason,
            usage=reader.usage,
            model=reader.model or model,
            block_types=tuple(reader.block_types),
            request_id=call.request_id,
        )

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """The provider's count of the prompt; None where it does not count. Raises like `summarize`."""
        call = self._call("/v1/messages/count_tokens", request, counting)
        del request
        answers: list[Any] = []

        async def read(response: httpx2.Response) -> None:
            answers.append(await call.read_json(response))

        failure = await self._exchange(call, read)
        if failure is not None and failure.status in _NOT_OFFERED:
            return None
        count = answers[0].get("input_tokens") if answers and isinstance(answers[0], dict) else None
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise failure or call_failures.not_a_message(request_id=call.request_id)
        return count

    async def probe(self) -> None:
        """Asks for the list of models, which needs a valid key and costs nothing. Raises like `summarize`.

        A gateway that does not offer it has answered, and that will do.
        """
        call = ModelCall("/v1/models", Upload(b""), (), self._deadlines)
        failure: ProviderError | None = None
        try:
            async with asyncio.timeout(MODELS_API_SECONDS):
                await self._client().models.list(limit=1)
        except self._sdk.APIStatusError as error:
            call.reply_headers = dict(error.response.headers)
            failure = call.refused(error.status_code, error.body)
        except Exception as error:  # noqa: BLE001 - as in `_send`
            failure = self._broken(error, call)
        if failure is not None and failure.status not in _NOT_OFFERED:
            raise failure

    async def limits(self, model: str) -> ModelLimits | None:
        """What the Models API says about `model`, kept for an hour; None where there is no such API or no answer."""
        return await self._directory.limits(model)

    def sdk_client(self) -> anthropic.AsyncAnthropic:
        """The running loop's client, for `claude_batches`: it speaks of batches through the SDK's own calls."""
        return self._client()

    def plain_call(self, path: str, body: bytes = b"") -> ModelCall:
        """A call whose body is no single request."""
        return ModelCall(path, Upload(body), (), self._deadlines)

    async def document(self, call: ModelCall) -> Json:
        """The JSON that a call gets. Raises like `summarize`."""
        answers: list[Json] = []

        async def read(response: httpx2.Response) -> None:
            answers.append(await call.read_json(response))

        if (failure := await self._exchange(call, read)) is not None:
            raise failure
        return answers[0]

    def problem(self, error: Exception, call: ModelCall) -> ProviderError:
        """The error of ours for one of the SDK's or its transport's."""
        if isinstance(error, self._sdk.APIStatusError):
            call.reply_headers = dict(error.response.headers)
            return call.refused(error.status_code, error.body)
        return self._broken(error, call)

    async def aclose(self) -> None:
        """Closes the connections of the running loop's client."""
        opened, self._open = self._open, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].close()

    def _call(self, path: str, request: SummaryRequest, form: Callable[[bytes], bytes]) -> ModelCall:
        body, betas = self._build(request)
        return ModelCall(path, Upload(form(body)), betas, self._deadlines)

    async def _exchange(
        self, call: ModelCall, read: Callable[[httpx2.Response], Awaitable[None]]
    ) -> ProviderError | None:
        """Sends the call and lets `read` have the reply. What went wrong comes back, for the caller to raise."""
        try:
            async with call.dog:
                response = await self._send(call)
                if isinstance(response, ProviderError):
                    return response
                call.reply_headers = dict(response.headers)
                try:
                    await read(response)
                finally:
                    await response.aclose()
        except _BROKEN as error:
            return self._broken(error, call)
        return None

    async def _send(self, call: ModelCall) -> httpx2.Response | ProviderError:
        """The open reply, or the error that its status or the lack of a reply means."""
        try:
            return await self._client().post(
                call.path,
                cast_to=httpx2.Response,
                content=call.pieces(),
                options={"headers": call.headers()},
                stream=True,
                stream_cls=None,
            )
        except self._sdk.APIStatusError as error:
            call.reply_headers = dict(error.response.headers)
            return call.refused(error.status_code, error.body)
        except Exception as error:  # noqa: BLE001 - the SDK leaks kinds of its own, its transport's and Python's
            return self._broken(error, call)

    def _broken(self, error: Exception, call: ModelCall) -> ProviderError:
        """What an exception means that is no answer of the provider."""
        if call.dog.expired == "total":
            return call_failures.too_slow(self._deadlines.total_seconds, request_id=call.request_id)
        if isinstance(error, TimeoutError | httpx2.TimeoutException | self._sdk.APITimeoutError):
            return call_failures.silent(call.dog.allowed_seconds, request_id=call.request_id)
        if call.reply_headers is not None:
            return call_failures.cut_off(request_id=call.request_id)
        cause = error.__cause__ if isinstance(error, self._sdk.APIConnectionError) else error
        if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            return call_failures.wrong_address()
        if isinstance(cause, httpx2.LocalProtocolError | TypeError | ValueError | self._sdk.CredentialsError):
            return call_failures.unusable_key()  # the SDK finds none, or what it finds cannot stand in a header
        return call_failures.unreachable()

    def _client(self) -> anthropic.AsyncAnthropic:
        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            self._open = (loop, self._new_client())
        return self._open[1]

    def _new_client(self) -> anthropic.AsyncAnthropic:
        waits = self._deadlines
        timeout = httpx2.Timeout(  # no read timeout: it would arm a timer per chunk, and the watchdog knows better
            connect=waits.connect_seconds, read=None, write=waits.idle_seconds, pool=waits.start_seconds
        )
        http = httpx2.AsyncClient(
            transport=AiohttpTransport(max_connections=self._max_connections, max_idle_seconds=MAX_IDLE_SECONDS),
            timeout=timeout,
            follow_redirects=False,  # a redirect would carry a transcript to another host
            event_hooks={"response": [bound_error_body]},
        )
        client: anthropic.AsyncAnthropic = self._sdk.AsyncAnthropic(
            api_key=self._api_key,
            auth_token=None if self._api_key else self._auth_token,
            base_url=self._base_url,
            timeout=timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=http,
        )
        return client

    async def _ask_limits(self, model: str) -> ModelLimits | None:
        try:
            async with asyncio.timeout(MODELS_API_SECONDS):
                info = await self._client().models.retrieve(model)
        except Exception:  # noqa: BLE001 - whatever it is, the table answers then
            return None
        window, output = getattr(info, "max_input_tokens", None), getattr(info, "max_tokens", None)
        if not isinstance(window, int) or not isinstance(output, int) or window <= 0 or output <= 0:
            return None
        return ModelLimits(window, output, source="api")


def _address_for_an_empty_one() -> str | None:
    """The API's own address when ANTHROPIC_BASE_URL is set to nothing, which the SDK would take for an address."""
    return PUBLIC_URL if os.environ.get("ANTHROPIC_BASE_URL") == "" else None


def _silence_logs() -> None:
    """At DEBUG the SDK and its transport print request bodies and headers; nobody may switch that on by accident."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
