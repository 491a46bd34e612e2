"""One session's way through Message Batches: the pipeline is run again with the answers that are there so far.

It asks for the next request the very way it would live: cuts after a refusal, asks again after a reply that is no
summary, and stops after as many tries. Where it needs an answer that is not there yet, that request goes into a batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import Any

from compaction import auto
from compaction.core import jsonbytes
from compaction.core.bulk import Load
from compaction.core.jobs import MAX_MODEL_CALLS
from compaction.core.jsonbytes import Json
from compaction.core.messages import Usage, usage_from
from compaction.errors import JobError, PromptTooLong, ProviderError
from compaction.ports import BatchAnswer, PaidSummary, Progress, SummaryReply, SummaryRequest
from compaction.store.bulk_items import BulkOrder
from compaction.store.jobs import Claim
from compaction.summarizers import models
from compaction.summarizers.provider_errors import Failure, error_for
from worker.assignment import Assignments

NAME = "claude"
_STATUS_OF_TYPE = {  # of a request by itself (facts/anthropic.md §1); in a batch only the type is told
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "billing_error": HTTPStatus.PAYMENT_REQUIRED,
    "permission_error": HTTPStatus.FORBIDDEN,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "timeout_error": HTTPStatus.GATEWAY_TIMEOUT,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True)
class Step:
    """What an item needs next: a request answered, or its summary taken over, or nothing (a model is not needed)."""

    request: SummaryRequest | None = None
    paid: PaidSummary | None = None
    failed: str | None = None  # the code of the error that asking again would meet again


class _Unanswered(Exception):
    """The pipeline asks for something that no batch has answered yet."""

    def __init__(self, request: SummaryRequest) -> None:
        super().__init__()
        self.request = request


class _Paid(Exception):
    """The pipeline has its summary; the rest is done by the job."""

    def __init__(self, summary: PaidSummary) -> None:
        super().__init__()
        self.summary = summary


class _Answered:
    """Implements ports.Summarizer: gives the answers in their order."""

    name = NAME

    def __init__(self, answers: Sequence[dict[str, Any]]) -> None:
        self._left = list(answers)

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The next answer; raises what it means if it is a refusal."""
        del progress
        if not self._left:
            raise _Unanswered(request)
        answer = self._left.pop(0)
        if answer["kind"] == "succeeded":
            return reply_in(answer["document"], request.model)
        raise refusal_in(answer["document"])

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """Nobody counts here: the refusal of a request that is too long tells."""
        del request
        return None

    async def probe(self) -> None:
        """Batches are asked for by the run itself."""


class _Recorder:
    """Implements ports.Recorder without a job; the job that comes of it has a timeline of its own."""

    def __init__(self) -> None:
        self._calls = 0

    def event(self, name: str, fields: dict[str, Json]) -> None:
        """Nobody's timeline yet."""

    def step(self, step: str, percent: int) -> None:
        """Nobody waits for it."""

    async def before_call(self) -> None:
        """As many calls as a job may make, and no more."""
        self._calls += 1
        if self._calls > MAX_MODEL_CALLS:
            raise PromptTooLong(f"The session used up its {MAX_MODEL_CALLS} model calls without a usable summary.")

    async def save_summary(self, summary: PaidSummary) -> None:
        """There it is."""
        raise _Paid(summary)


async def next_step(
    assignments: Assignments, claim: Claim, order: BulkOrder, answers: Sequence[dict[str, Any]]
) -> Step:
    """What the item needs after these answers."""
    recorder = _Recorder()
    task, switches, ports = await assignments.prepared(claim, recorder, order, _Answered(answers))
    price = partial(models.price, batch=True)
    task = replace(task, shares_prefix=False)  # nobody's cache is warm when a batch comes to it
    try:
        await auto.run(task, switches, replace(ports, price=price, last_resort=False))
    except _Unanswered as asked:
        return Step(request=asked.request)
    except _Paid as done:
        return Step(paid=done.summary)
    except JobError as error:
        return Step(failed=error.code)
    return Step()


def reply_in(document: dict[str, Any], model: str) -> SummaryReply:
    """A message document as the reply of a call."""
    blocks = [block for block in document.get("content") or () if isinstance(block, dict)]
    return SummaryReply(
        text="".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text"),
        stop_reason=document.get("stop_reason"),
        usage=usage_from(document.get("usage")) or Usage(),
        model=str(document.get("model") or model),
        block_types=tuple(str(block.get("type")) for block in blocks),
    )


def refusal_in(document: Json) -> ProviderError:
    """An error document as the error of a call."""
    error = document.get("error") if isinstance(document, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    status = _STATUS_OF_TYPE.get(str(kind), HTTPStatus.INTERNAL_SERVER_ERROR)
    return error_for(Failure(status=int(status), body=document), now_seconds=time.time())


def spent_on(answer: BatchAnswer, model: str) -> Load:
    """What a request cost: only an answered one is paid."""
    if answer.kind != "succeeded" or not isinstance(answer.document, dict):
        return Load()
    reply = reply_in(answer.document, model)
    used = reply.usage.prompt_tokens + reply.usage.output_tokens
    return Load(used, models.price(reply.model, reply.usage, batch=True) or Decimal(0))


def with_answer(answers: bytes, answer: BatchAnswer) -> bytes:
    """The answers so far (JSON) and this one."""
    document = answer.document
    if answer.kind == "succeeded" and isinstance(document, dict):
        document = {name: document.get(name) for name in ("content", "stop_reason", "usage", "model")}
    return jsonbytes.encode([*jsonbytes.decode(answers), {"kind": answer.kind, "document": document}])
