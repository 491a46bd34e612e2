"""What a compacted conversation needs beside its summary: files, plan, plan mode, skills, tools, agents, MCP servers.

Each builder is a pure function from the session's state, the kept messages and the tool table to one message or None;
the pipeline runs them side by side and leaves out one that fails. Declarations are made anew from an empty baseline:
nothing that was declared before the compaction counts as known. A message is a user's to the API, marked as injected
(is_meta) and as made anew by each compaction (`core.rebuilt`); its first block says so, each other one holds one item.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files as resources
from types import MappingProxyType

from compaction.core import excerpt, tokens
from compaction.core.messages import Block, Message
from compaction.core.rebuilt import ATTACHMENT_KIND
from compaction.core.recent_files import recent_files, shown_files
from compaction.core.session_state import Declaration, Note, SessionState
from compaction.core.tool_table import ToolTable

MAX_FILES = 5  # DESIGN §3
FILE_TOKENS = 5_000  # DESIGN §3: of one file
FILES_TOKENS = 50_000  # DESIGN §3: of all files
MAX_SKILLS = 5  # 25,000 / 5,000
SKILL_TOKENS = 5_000  # DESIGN §3: of one skill
SKILLS_TOKENS = 25_000  # DESIGN §3: of all skills
MAX_PLANS = 5  # plans of a session; one is usual
PLAN_TOKENS = 10_000  # ours: a plan comes back word for word, but a plan of the window's size would defeat the purpose
DECLARATIONS_TOKENS = 5_000  # ours: of one kind of declarations; as much as one file
MAX_SERVERS = 20  # MCP servers with instructions
SERVERS_TOKENS = 10_000  # ours: of all servers' instructions
MAX_LABEL_CHARS = 300  # of a path or name above an item

FENCE_CHARS = 4  # a fence is longer than any run of tildes in its text, like that of the rendered transcript
MAX_FENCE_CHARS = 32  # longer runs in a text are broken up by spaces
_RUN = re.compile(f"~{{{FENCE_CHARS},}}")
_TOO_LONG = re.compile(f"~{{{MAX_FENCE_CHARS - 1}}}(?=~)")
_TEXTS: Mapping[str, str] = MappingProxyType(
    tomllib.loads(resources("compaction.core").joinpath("texts", "attachments.toml").read_text("utf-8"))
)

Builder = Callable[[SessionState, Sequence[Message], ToolTable], Message | None]


@dataclass(frozen=True, slots=True)
class Built:
    """The attachments in their order, and the builders that failed; a failure never fails the job."""

    messages: tuple[Message, ...] = ()
    failed: tuple[str, ...] = ()


def with_transcript_files(
    state: SessionState, messages: Sequence[Message], kept: Sequence[Message], table: ToolTable
) -> SessionState:
    """The state with the files of the transcript's own tool calls that come back, where the producer has stored none.

    `kept` are those of the `messages` that stay word for word.
    """
    if state.files:
        return state
    return replace(state, files=recent_files(messages, table, passed=_passed(state, kept, table), most=MAX_FILES))


def build(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Built:
    """All attachments, one builder after the other."""
    found: list[Message] = []
    failed: list[str] = []
    for name, builder in BUILDERS.items():
        try:
            message = builder(state, kept, table)
        except Exception:  # noqa: BLE001 - whatever is wrong with one attachment, the summary was paid for
            failed.append(name)
        else:
            found += [message] if message is not None else []
    return Built(tuple(found), tuple(failed))


def within(messages: Sequence[Message], room_tokens: int) -> tuple[Message, ...]:
    """The attachments without what is over the room: the least needed items of the least needed kinds go first."""
    left = {_kind(message): message for message in messages}
    over = tokens.estimate_messages(messages) - room_tokens
    for kind in reversed(NEEDED_FIRST):
        while over > 0 and kind in left:
            message = left.pop(kind)
            over -= tokens.estimate_message(message)
            shorter = replace(message, content=message.blocks()[:-1])
            if len(shorter.content) > 1:
                left[kind] = shorter
                over += tokens.estimate_message(shorter)
    return tuple(left[kind] for kind in map(_kind, messages) if kind in left)


def files(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """The newest files that the kept messages do not show any more; memory and plans are no files here."""
    passed = _passed(state, kept, table)
    wanted = [note for note in state.files if note.name not in passed]
    return _message("files", _items("file", wanted[:MAX_FILES], FILE_TOKENS, FILES_TOKENS))


def plan(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """The plan, word for word."""
    del kept, table
    return _message("plan", _items("plan", state.plans[:MAX_PLANS], PLAN_TOKENS, PLAN_TOKENS))


def plan_mode(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """That plan mode is on."""
    del kept, table
    return _stated("plan_mode", ()) if state.plan_mode else None


def skills(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """The skills used last."""
    del kept, table
    return _message("skills", _items("skill", state.skills[:MAX_SKILLS], SKILL_TOKENS, SKILLS_TOKENS))


def tools(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """The tools that the request does not declare."""
    del kept, table
    return _message("tools", _lines(state.tools))


def agents(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """The agents and how far they are."""
    del kept, table
    return _message("agents", _lines(state.agents))


def mcp_instructions(state: SessionState, kept: Sequence[Message], table: ToolTable) -> Message | None:
    """What the connected MCP servers say about their use."""
    del kept, table
    notes = state.mcp_instructions[:MAX_SERVERS]
    return _message("mcp_instructions", _items("MCP server", notes, SKILL_TOKENS, SERVERS_TOKENS))


BUILDERS: Mapping[str, Builder] = MappingProxyType(  # in the order of DESIGN §3
    {
        "files": files,
        "plan": plan,
        "plan_mode": plan_mode,
        "skills": skills,
        "tools": tools,
        "agents": agents,
        "mcp_instructions": mcp_instructions,
    }
)
# What an agent cannot find out again comes first; files it can read again.
NEEDED_FIRST = ("plan_mode", "plan", "agents", "skills", "mcp_instructions", "tools", "files")


def _passed(state: SessionState, kept: Sequence[Message], table: ToolTable) -> frozenset[str]:
    """The files that need not come back: the kept messages show them, or they come back as something else."""
    return shown_files(kept, table) | {note.name for note in (*state.memory, *state.claude_md, *state.plans)}


def _message(kind: str, items: Sequence[str]) -> Message | None:
    return _stated(kind, items) if items else None


def _stated(kind: str, items: Sequence[str]) -> Message:
    blocks: list[Block] = [{"type": "text", "text": text} for text in (f"[{_TEXTS[kind]}]", *items)]
    return Message(role="user", content=blocks, is_meta=True, metadata={"kind": ATTACHMENT_KIND, "attachment": kind})


def _kind(message: Message) -> str:
    return str((message.metadata or {}).get("attachment"))


def _items(label: str, notes: Sequence[Note], each_tokens: int, all_tokens: int) -> list[str]:
    """Each text under its name, cut to its budget; what no longer fits into the budget of all is left out."""
    items: list[str] = []
    for note in notes:
        budget = min(each_tokens, all_tokens)
        if budget <= excerpt.MARK_TOKENS:
            break
        text = excerpt.cut(note.text, budget)
        all_tokens -= tokens.estimate_text(text)
        items.append(_fenced(f"{label} {_label(note.name)}", text))
    return items


def _lines(declared: Sequence[Declaration]) -> list[str]:
    """One item with a line per declaration, cut to the budget."""
    lines = [
        f"- {_label(one.name)}{f' ({_label(one.status)})' if one.status else ''}{f': {one.text}' if one.text else ''}"
        for one in declared
    ]
    return [excerpt.cut("\n".join(lines), DECLARATIONS_TOKENS)] if lines else []


def _fenced(header: str, text: str) -> str:
    whole = _TOO_LONG.sub("\\g<0> ", text)
    fence = "~" * max((len(run) + 1 for run in _RUN.findall(whole)), default=FENCE_CHARS)
    return f"{header}\n{fence}\n{whole}\n{fence}"


def _label(name: str) -> str:
    return " ".join(name.split())[:MAX_LABEL_CHARS]
