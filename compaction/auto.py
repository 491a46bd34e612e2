"""auto_compact_if_needed(): guards, breaker and the ladder from light to heavy; and the other triggers' ways in.

A skip is an answer, never an error: the job is finished with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core import policy, tokens
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.results import Outcome, Skipped
from compaction.errors import JobError
from compaction.pipeline import Ports, Task, compact_conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What the operator and the session switched, and the state of the session's breaker."""

    disable_compact: bool = False
    disable_auto_compact: bool = False
    breaker_open: bool = False


async def run(task: Task, switches: Switches, ports: Ports) -> Outcome:
    """One attempt at a job of any trigger. Raises errors.JobError after recording tengu_compact_failed."""
    try:
        if task.order.trigger == "auto":
            return await auto_compact_if_needed(task, switches, ports)
        return await _compact_on_request(task, switches, ports)
    except JobError as error:
        ports.recorder.event("tengu_compact_failed", _failed_event(task, error))
        raise


async def auto_compact_if_needed(task: Task, switches: Switches, ports: Ports) -> Outcome:
    """Guards first, then the ladder; the first step that brings the session under its threshold ends it."""
    messages = await ports.history.load()
    reason = policy.skip_reason(_guards(task, switches, _tokens(task, messages))) or _nothing(messages)
    del messages  # a call may follow; it loads what it needs
    if reason is not None:
        return Skipped(reason)
    return await compact_conversation(task, ports)


async def _compact_on_request(task: Task, switches: Switches, ports: Ports) -> Outcome:
    reason = policy.skip_reason(_guards(task, switches, 0))
    if reason is None and task.paid is None:
        reason = _nothing(await ports.history.load())
    if reason is not None:
        return Skipped(reason)
    return await compact_conversation(task, ports)


def _guards(task: Task, switches: Switches, session_tokens: int) -> policy.Guards:
    settings = task.facts.settings
    return policy.Guards(
        trigger=task.order.trigger,
        force=task.order.force,
        disable_compact=switches.disable_compact,
        disable_auto_compact=switches.disable_auto_compact,
        auto_compact_enabled=settings.get("auto_compact_enabled") is not False,
        query_source=task.facts.query_source,
        reactive_mode=settings.get("reactive_mode") is True,
        context_collapse=settings.get("context_collapse") is True,
        breaker_open=switches.breaker_open,
        tokens=session_tokens,
        threshold=task.thresholds.auto_compact,
    )


def _tokens(task: Task, messages: Sequence[Message]) -> int:
    facts = task.facts
    return tokens.session_tokens(messages, system=facts.system, tools=facts.tools).tokens


def _nothing(messages: Sequence[Message]) -> policy.SkipReason | None:
    return "nothing_to_compact" if policy.nothing_to_compact(messages) else None


def _failed_event(task: Task, error: JobError) -> dict[str, Json]:
    return {
        "trigger": task.order.trigger,
        "auto": task.order.trigger == "auto",
        "code": error.code,
        "retryable": error.retryable,
        "attempt": task.attempt,
        "query_source": task.facts.query_source,
    }
