"""auto_compact_if_needed(): guards, breaker and the ladder from light to heavy; and the other triggers' ways in.

A skip is an answer, never an error: the job is finished with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction import events
from compaction.assembly import with_context_edit, without_old_results
from compaction.core import context_edits, microcompact, policy, session_memory, sharing, tokens
from compaction.core.messages import Message
from compaction.core.results import CompactionResult, Outcome, Skipped
from compaction.errors import JobError, NotEffective
from compaction.pipeline import compact_conversation, compact_with_memory
from compaction.task import Ports, Task, survey

NOTHING = Skipped("nothing_to_compact")
LIGHT = frozenset({"microcompact", "session_memory"})  # strategies that need no model


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What the operator switched, and the state of the session's breaker."""

    disable_compact: bool = False
    disable_auto_compact: bool = False
    breaker_open: bool = False


async def run(task: Task, switches: Switches, ports: Ports) -> Outcome:
    """One attempt at a job of any trigger. Raises errors.JobError after recording the event of the failure."""
    try:
        if task.order.trigger == "auto":
            return await auto_compact_if_needed(task, switches, ports)
        return await _compact_on_request(task, switches, ports)
    except JobError as error:
        ports.recorder.event(events.failed_name(task), events.failed(task, error))
        raise


async def auto_compact_if_needed(task: Task, switches: Switches, ports: Ports) -> Outcome:
    """Guards first, then the ladder; the first step that brings the session under its threshold ends it."""
    off = policy.skip_reason(_guards(task, switches, task.thresholds.auto_compact, 0))
    if off is not None:
        return Skipped(off)  # none of these reasons needs the history
    messages = await ports.history.load()
    size = tokens.session_tokens(messages, system=task.facts.system, tools=task.facts.tools).tokens
    over = size >= task.thresholds.auto_compact
    size_bytes = 0 if over else tokens.estimate_bytes(messages)  # asked only of a session that has few tokens
    reason = policy.skip_reason(_guards(task, switches, size, size_bytes))
    if reason is not None:
        return Skipped(reason)
    if task.paid is None:
        if policy.nothing_to_compact(messages):
            return NOTHING
        _check_overhead(task, task.thresholds.auto_compact)
        light = await _light_steps(task, ports) if over else None
        if light is not None:
            return light
        if task.order.strategy in LIGHT:
            return NOTHING
    del messages  # a call may follow; it loads what it needs
    return await compact_conversation(task, ports)


async def _compact_on_request(task: Task, switches: Switches, ports: Ports) -> Outcome:
    """Manual, reactive and bulk: session memory first unless instructions were given, then full compaction."""
    reason = policy.skip_reason(_guards(task, switches, 0, 0))
    if reason is not None:
        return Skipped(reason)
    if task.paid is None:
        messages = await ports.history.load()
        if policy.nothing_to_compact(messages):
            return NOTHING
        _check_overhead(task, task.thresholds.effective_window)
        if task.order.strategy == "microcompact":
            return _cleared(task, ports, messages) or NOTHING
        if _may_use_memory(task) and (light := await _from_memory(task, ports, messages)):
            return light
        if task.order.strategy == "session_memory":
            return NOTHING
        del messages
    return await compact_conversation(task, ports)


async def _light_steps(task: Task, ports: Ports) -> CompactionResult | None:
    """The steps that need no model, in their order; None when none of them brings the session under its threshold.

    An order that names its strategy allows that step alone; one for a part of the session allows none.
    """
    order = task.order
    if order.scope.kind != "full":
        return None
    messages = await ports.history.load()
    for step in (_time_based, _cache_edit) if order.strategy in {None, "microcompact"} else ():
        light = step(task, ports, messages)
        if light is not None and light.under_threshold:
            return light
    return await _from_memory(task, ports, messages) if order.strategy in {None, "session_memory"} else None


def _time_based(task: Task, ports: Ports, messages: Sequence[Message]) -> CompactionResult | None:
    micro = microcompact.time_based(
        messages,
        now=task.now,
        table=task.table,
        threshold_ms=task.micro_threshold_ms,
        already_cleared=task.cleared_ids,
    )
    return None if micro is None else _micro_result(task, ports, messages, micro)


def _cleared(task: Task, ports: Ports, messages: Sequence[Message]) -> CompactionResult | None:
    """Micro-compaction that was asked for by name: all old results, however young."""
    everything = tokens.estimate_messages(messages)
    micro = microcompact.prepare(messages, table=task.table, excess_tokens=everything)
    return None if micro is None else _micro_result(task, ports, messages, micro)


def _micro_result(
    task: Task, ports: Ports, messages: Sequence[Message], micro: microcompact.MicroCompaction
) -> CompactionResult:
    result = without_old_results(task, view := survey(task, messages), micro)
    if result.under_threshold or task.order.trigger != "auto":
        ports.recorder.event("microcompact", micro.event_fields())
        ports.recorder.event("tengu_compact", events.compacted(task, view, result))
    return result


def _cache_edit(task: Task, ports: Ports, messages: Sequence[Message]) -> CompactionResult | None:
    request = task.facts.request if isinstance(task.facts.request, dict) else {}
    edit = context_edits.cache_edit(
        messages,
        cache_warm=sharing.is_warm(request, messages, task.now),
        table=task.table,
        already_cleared=task.cleared_ids,
        tools=task.facts.tools,
    )
    if edit is None:
        return None
    result = with_context_edit(task, view := survey(task, messages), tuple(messages), edit)
    if result.under_threshold:
        ports.recorder.event("tengu_cached_microcompact", edit.event_fields())
        ports.recorder.event("tengu_compact", events.compacted(task, view, result))
    return result


async def _from_memory(task: Task, ports: Ports, messages: Sequence[Message]) -> CompactionResult | None:
    """The conversation by its own memory, None when there is none or it would not help."""
    memory = session_memory.compact(messages, task.state.memory_document)
    return None if memory is None else await compact_with_memory(task, ports, memory)


def _may_use_memory(task: Task) -> bool:
    """Instructions want a summary that was written for them, a reactive job a full one; whoever names it gets it."""
    order = task.order
    if order.scope.kind != "full":
        return False
    plain = order.strategy is None and order.trigger != "reactive" and not order.instructions
    return plain or order.strategy == "session_memory"


def _check_overhead(task: Task, limit_tokens: int) -> None:
    """System prompt and tools alone over the limit: no summary can help, and trying again and again is waste."""
    if tokens.estimate_overhead(task.facts.system, task.facts.tools) >= limit_tokens:
        raise NotEffective("System prompt and tools alone fill the window. Shorten them or use a larger window.")


def _guards(task: Task, switches: Switches, size_tokens: int, size_bytes: int) -> policy.Guards:
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
        tokens=size_tokens,
        threshold=task.thresholds.auto_compact,
        size_bytes=size_bytes,
        limit_bytes=task.limit_bytes,
    )
