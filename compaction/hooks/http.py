"""HTTP hooks of a tenant: one signed POST per event with ids and sizes, and a small JSON answer."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from compaction.core import jsonbytes
from compaction.core.hooks import Endpoint, Event
from compaction.core.jsonbytes import Json
from compaction.hooks.guarded import Answer, CallProblem, GuardedCaller
from compaction.hooks.signing import signed_headers
from compaction.ports import HookContext

_IDS = uuid.UUID("0c6b6a5e-7b0e-5d0e-8f3c-6d8f1a4b2c70")  # namespace of the ids of our calls


@dataclass(frozen=True, slots=True)
class HttpHook:
    """An endpoint as a hook of the chain."""

    endpoint: Endpoint
    caller: GuardedCaller

    @property
    def name(self) -> str:
        """The id under /v1/hooks: the address may hold secrets."""
        return f"http:{self.endpoint.id}"

    @property
    def timeout_seconds(self) -> float:
        """As the tenant set it."""
        return self.endpoint.timeout_seconds

    def hears(self, event: Event) -> bool:
        """Whether the endpoint was set up for the event."""
        return self.endpoint.event == event

    async def ask(self, event: Event, context: HookContext) -> Json:
        """The decoded answer; None for an empty one. Raises CallProblem."""
        body = request_body(event, context)
        headers = signed_headers(self.endpoint.secret, self._call_id(context), datetime.now(UTC), body)
        answer = await self.caller.post(
            context.tenant, self.endpoint.url, body, headers | {"Content-Type": "application/json"}
        )
        return _decoded(answer)

    def _call_id(self, context: HookContext) -> str:
        """The same for each attempt of a job: a receiver can tell a repetition from a new question."""
        return f"msg_{uuid.uuid5(_IDS, f'{self.endpoint.id}/{context.job_id}').hex}"


def request_body(event: Event, context: HookContext) -> bytes:
    """What a hook is told: no content, and no instructions either, which may quote some."""
    return jsonbytes.encode(
        {
            "event": event,
            "tenant": context.tenant,
            "session_id": context.session_id,
            "job_id": context.job_id,
            "trigger": context.trigger,
            "pre_tokens": context.pre_tokens,
        }
    )


def _decoded(answer: Answer) -> Json:
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP's own class of success
        raise CallProblem(f"answered with status {answer.status}")
    if not answer.body.strip():
        return None
    try:
        return jsonbytes.decode(answer.body)
    except ValueError:
        raise CallProblem("answered with something that is no JSON") from None
