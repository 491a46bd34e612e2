"""Message Batches through the official SDK: implements ports.MessageBatches beside `claude`, which owns the client.

The body of a batch is put together from ready requests and sent as bytes: the SDK's own `create` would decode and
encode them once more, and a batch may be large.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import httpx2
import msgspec

from compaction.core import jsonbytes
from compaction.errors import ProviderError
from compaction.ports import BatchAnswer, BatchRequest, BatchState, SummaryRequest
from compaction.summarizers import call_failures
from compaction.summarizers.claude import ClaudeSummarizer, build_body

PATH = "/v1/messages/batches"
PAGE = 100  # batches of one page of the list
MAX_LISTED = 1_000  # batches that are looked through after a crash; more were never made within a day
Told = TypeVar("Told")


class ClaudeBatches:
    """One per process, beside its summarizer."""

    def __init__(self, claude: ClaudeSummarizer) -> None:
        self._claude = claude

    def body_of(self, request: SummaryRequest) -> bytes:
        """The request without streaming, which a batch does not know."""
        body, _ = build_body(request)
        members = jsonbytes.members(body)
        members.pop("stream", None)
        return jsonbytes.encode({name: msgspec.Raw(raw) for name, raw in members.items()})

    async def create(self, requests: Sequence[BatchRequest]) -> BatchState:
        """Sends a batch. Raises ProviderError; one with a status is a refusal, any other leaves it open."""
        call = self._claude.plain_call(PATH, b"".join(_pieces(requests)))  # one copy: a batch may be large
        document = await self._claude.document(call)
        if not isinstance(document, dict) or not isinstance(document.get("id"), str):
            raise call_failures.not_a_message(request_id=call.request_id)
        return _state_of(document)

    async def retrieve(self, batch_id: str) -> BatchState:
        """The batch as it stands."""
        client = self._claude.sdk_client()
        return _state(await self._asked(lambda: client.messages.batches.retrieve(batch_id)))

    async def newest(self, since: datetime) -> list[BatchState]:
        """The batches that were made since then, newest first."""

        async def listed() -> list[BatchState]:
            found: list[BatchState] = []
            async for batch in await self._claude.sdk_client().messages.batches.list(limit=PAGE):
                state = _state(batch)
                if state.created_at < since or len(found) >= MAX_LISTED:
                    break
                found.append(state)
            return found

        return await self._asked(listed)

    async def cancel(self, batch_id: str) -> None:
        """Begins no further request of it."""
        client = self._claude.sdk_client()
        await self._asked(lambda: client.messages.batches.cancel(batch_id))

    async def answers(self, batch_id: str) -> AsyncIterator[BatchAnswer]:
        """What came of each request, read line by line."""
        client = self._claude.sdk_client()
        lines = await self._asked(lambda: client.messages.batches.results(batch_id))
        problem: ProviderError | None = None
        try:
            async for line in lines:
                yield _answer(line)
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            problem = self._claude.problem(error, self._claude.plain_call(PATH))
        if problem is not None:
            raise problem

    async def _asked(self, ask: Callable[[], Awaitable[Told]]) -> Told:
        """What the SDK gives. Raises ProviderError outside of `except`, so that nothing of the SDK's hangs on it."""
        try:
            return await ask()
        except Exception as error:  # noqa: BLE001 - the SDK leaks kinds of its own, its transport's and Python's
            problem = self._claude.problem(error, self._claude.plain_call(PATH))
        raise problem


def _pieces(requests: Sequence[BatchRequest]) -> Iterator[bytes]:
    """The body of a batch."""
    before = b'{"requests":[{"custom_id":'
    for one in requests:
        yield before + jsonbytes.encode(one.custom_id) + b',"params":'
        yield one.body
        before = b'},{"custom_id":'
    yield b"}]}"


def _state(batch: Any) -> BatchState:  # noqa: ANN401 - the SDK's MessageBatch, whose types this file must not import
    return BatchState(
        batch.id, batch.processing_status == "ended", batch.created_at, dict(batch.request_counts.to_dict())
    )


def _state_of(document: dict[str, Any]) -> BatchState:
    created_at = datetime.fromisoformat(str(document.get("created_at")))
    return BatchState(
        document["id"], document.get("processing_status") == "ended", created_at, dict(document["request_counts"])
    )


def _answer(line: Any) -> BatchAnswer:  # noqa: ANN401 - the SDK's MessageBatchIndividualResponse
    kind = line.result.type
    document = {"succeeded": "message", "errored": "error"}.get(kind)
    told = None if document is None else getattr(line.result, document).to_dict(mode="json")
    return BatchAnswer(line.custom_id, kind, told)
