"""What an agent's run-time state must forget when its history was replaced: a list of named steps.

A producer may keep such state with us, as session state of the kind `runtime` under a step's name or under names below
it (`memory_files/CLAUDE.md`). A step forgets these entries. Which steps run is decided here; `store.session_state` does
it, in the transaction that commits the result: a failed attempt forgets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Phase = Literal["before_attachments", "after_commit"]
Entry = tuple[str, str]  # (kind, key) of session state; a key stands for all that is below it too

RUNTIME = "runtime"  # the reserved kind of session state
KEPT = ("sent_skill_names",)  # keys of the same kind that every compaction leaves: skills are not announced twice

# How producers name a sub-agent's conversation: `agent:<type>` in Claude Code, the others by their plain sense.
_SUB_AGENT = re.compile(r"(?:agent:|sub[-_ ]?agent|side[-_ ]?chain)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CleanupStep:
    """One thing to forget. `before_attachments`: attachments are built as if it were forgotten already.

    `main_thread_only`: a sub-agent shares this state with the conversation that started it, which goes on with it.
    """

    name: str
    phase: Phase
    main_thread_only: bool = False

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of session state that the step forgets."""
        return ((RUNTIME, self.name),)


STEPS = (  # DESIGN §3, in its order
    CleanupStep("file_state", "before_attachments"),  # which files the agent has read, and in which version
    CleanupStep("loaded_memory_paths", "before_attachments"),
    CleanupStep("micro_compaction", "after_commit"),
    CleanupStep("context_collapse", "after_commit", main_thread_only=True),
    CleanupStep("memory_files", "after_commit", main_thread_only=True),
    CleanupStep("system_prompt_sections", "after_commit"),
    CleanupStep("classifier_approvals", "after_commit"),
    CleanupStep("speculative_checks", "after_commit"),
    CleanupStep("beta_tracking", "after_commit"),
    CleanupStep("session_messages", "after_commit"),
)


def is_main_thread(query_source: str | None) -> bool:
    """Whether the session is an agent's own conversation and not a sub-agent's."""
    return query_source is None or not _SUB_AGENT.match(query_source)


def steps_for(query_source: str | None, strategy: str, *, phase: Phase | None = None) -> tuple[CleanupStep, ...]:
    """The steps that run after a compaction of this session, of one phase or of both, in their order.

    Micro-compaction alone needs none: the history stays what it was, and its own state must stay with it.
    """
    if strategy == "microcompact":
        return ()
    main = is_main_thread(query_source)
    return tuple(
        step for step in STEPS if (main or not step.main_thread_only) and (phase is None or step.phase == phase)
    )


def names(steps: Iterable[CleanupStep]) -> list[str]:
    """The steps' names, as they stand in the event."""
    return [step.name for step in steps]


def entries(steps: Iterable[CleanupStep]) -> tuple[Entry, ...]:
    """All entries of session state that the steps forget."""
    return tuple(entry for step in steps for entry in step.entries)


def forgets(kind: str, key: str, steps: Iterable[CleanupStep]) -> bool:
    """Whether one of the steps forgets this entry: attachments leave out what is forgotten before they are built."""
    return any(kind == ours and (key == name or key.startswith(f"{name}/")) for ours, name in entries(steps))
