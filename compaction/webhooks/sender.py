"""One try of one delivery: a signed POST that cannot reach into the operator's network, judged by its status alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from compaction import telemetry
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.webhooks import Attempt
from compaction.hooks.deadline import GaveUp, TooSlow, within
from compaction.hooks.guarded import Answer, CallProblem, GuardedCaller
from compaction.hooks.signing import signed_headers

_log = telemetry.logger("webhooks")


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent, to whom and in whose name. Address and secrets stay out of every repr."""

    delivery_id: str
    tenant: str
    url: str = field(repr=False)
    secrets: Sequence[str] = field(repr=False)
    payload: Json


class Sender:
    """Sends letters; a try takes at most `timeout_seconds`, whatever the receiver does."""

    def __init__(self, caller: GuardedCaller, timeout_seconds: float) -> None:
        self._caller = caller
        self._timeout_seconds = timeout_seconds

    async def send(self, letter: Letter) -> Attempt:
        """What the try came to; nothing is raised but a cancellation of ourselves.

        What the receiver says beside its status and Retry-After is read up to a limit and thrown away. A redirect is a
        refusal.
        """
        try:
            answer = await within(self._timeout_seconds, self._posted(letter))
        except (TooSlow, GaveUp):
            return Attempt(problem="timeout")
        except CallProblem as problem:
            return Attempt(problem=problem.code)
        except Exception as error:  # noqa: BLE001 - whatever a receiver brings about, the courier goes on
            _log.warning("webhook.raised", delivery_id=letter.delivery_id, **telemetry.failure(error))
            return Attempt(problem="internal")
        return Attempt(status=answer.status, retry_after_seconds=answer.retry_after_seconds)

    async def _posted(self, letter: Letter) -> Answer:
        body = jsonbytes.encode(letter.payload)
        headers = signed_headers(letter.secrets, message_id(letter.delivery_id), datetime.now(UTC), body)
        headers["Content-Type"] = "application/json"
        return await self._caller.post(letter.tenant, letter.url, body, headers)


def message_id(delivery_id: str) -> str:
    """The webhook-id of a delivery: the same in each try, so that a receiver can tell a repetition."""
    return f"msg_{UUID(delivery_id).hex}"
