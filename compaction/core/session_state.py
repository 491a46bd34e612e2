"""What an agent knows beside its messages, read from the entries that its producer stored under kinds and keys.

Producers shape their entries as they like: a bare text, an object with the text under one of a few names, or a list of
such objects. What cannot be read is noted and left out; nothing here fails a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from compaction.core import ages
from compaction.core.block_text import json_text
from compaction.core.jsonbytes import Json

MAX_ENTRIES = 1_000  # of one kind; far more than ever come back into a conversation
MAX_PROBLEMS = 20  # notes on what could not be read
MEMORY_NAMES = frozenset({"session", "session_memory"})  # keys of the one document about this very session

_TEXT_KEYS = ("content", "text", "plan", "instructions", "body")
_PURPOSE_KEYS = ("description", "task", *_TEXT_KEYS, "prompt")
_NAME_KEYS = ("name", "title", "server", "path")
_PATH_KEYS = ("path", "file_path", "filename", "name")
_IDENT_KEYS = ("id", "agent_id", "name")
_STATUS_KEYS = ("status", "state")
_TIME_KEYS = ("used_at", "read_at", "edited_at", "written_at", "updated_at", "at")
_ON_KEYS = ("active", "enabled", "on")
_ON_WORDS = {"on": True, "true": True, "active": True, "plan": True, "off": False, "false": False, "": False}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Entry = tuple[str, str, Json]  # kind, key, value
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Note:
    """A named text: a plan, a skill, a memory document, an MCP server's instructions, or a file under its path."""

    name: str
    text: str = field(repr=False)
    at: datetime | None = None  # when it was used, read or written last


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool or agent at the session's disposal: its name, its state where it is running, what it is for."""

    name: str
    text: str = field(default="", repr=False)
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The stored state. Files and skills stand newest first; those without a time stand last, in stored order."""

    files: tuple[Note, ...] = ()
    plans: tuple[Note, ...] = ()
    plan_mode: bool = False
    skills: tuple[Note, ...] = ()  # used ones
    memory: tuple[Note, ...] = ()
    claude_md: tuple[Note, ...] = ()
    tools: tuple[Declaration, ...] = ()
    agents: tuple[Declaration, ...] = ()
    mcp_instructions: tuple[Note, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def memory_document(self) -> str:
        """The session's memory: the entry `session` or `session_memory` where there is one, else all of them."""
        own = [note for note in self.memory if note.name in MEMORY_NAMES]
        return "\n\n".join(note.text for note in own or self.memory)


def state_from(entries: Sequence[Entry]) -> SessionState:
    """The state in (kind, key, value) entries. Kinds that are none of ours are passed over."""
    problems: list[str] = []
    return SessionState(
        files=_newest_first(_all(entries, "files", _file, problems)),
        plans=_said(_all(entries, "plans", _note, problems)),
        plan_mode=any(_all(entries, "plan_mode", _switch, problems)),
        skills=_newest_first(_all(entries, "skills", _skill, problems)),
        memory=_said(_all(entries, "memory", _note, problems)),
        claude_md=_said(_all(entries, "claude_md", _note, problems)),
        tools=tuple(_all(entries, "tools", _tool, problems)),
        agents=tuple(_all(entries, "agents", _agent, problems)),
        mcp_instructions=_said(_all(entries, "mcp_instructions", _note, problems)),
        problems=tuple(problems[:MAX_PROBLEMS]),
    )


def _all(
    entries: Sequence[Entry], wanted: str, read: Callable[[str, Json], Read | None], problems: list[str]
) -> list[Read]:
    """What `read` makes of the entries of one kind; a list stands for several entries."""
    found: list[Read] = []
    for key, item in _items(entries, wanted):
        value = read(key, item) if len(found) < MAX_ENTRIES else None
        if value is not None:
            found.append(value)
        elif len(problems) < MAX_PROBLEMS:
            problems.append(f"An entry of the kind {wanted} cannot be read; it is left out.")
    return found


def _items(entries: Sequence[Entry], wanted: str) -> Iterator[tuple[str, Json]]:
    for kind, key, value in entries:
        if kind == wanted:
            yield from ((key, item) for item in (value if isinstance(value, list) else [value]))


def _said(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(note for note in notes if note.text.strip())


def _newest_first(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(sorted(_said(notes), key=lambda note: note.at or _LONG_AGO, reverse=True))


def _note(key: str, value: Json, name_keys: tuple[str, ...] = _NAME_KEYS) -> Note | None:
    if isinstance(value, str):
        return Note(key, value)
    text = _first(value, _TEXT_KEYS)
    if text is None:
        return None
    at = next((found for name in _TIME_KEYS if (found := ages.moment(value.get(name))) is not None), None)
    return Note(_first(value, name_keys) or key, text, at)


def _file(key: str, value: Json) -> Note | None:
    return _note(key, value, _PATH_KEYS)


def _skill(key: str, value: Json) -> Note | None:
    """A skill; one that was not used says nothing here, because only used ones come back."""
    unused = isinstance(value, dict) and value.get("used") is False
    return Note(key, "") if unused else _note(key, value)


def _switch(key: str, value: Json) -> bool | None:
    del key
    if isinstance(value, dict):
        value = next((value[name] for name in _ON_KEYS if name in value), True)
    if isinstance(value, str):
        value = _ON_WORDS.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _tool(key: str, value: Json) -> Declaration | None:
    if isinstance(value, str):
        return Declaration(key, value)
    if not isinstance(value, dict) or not value:
        return None
    return Declaration(_first(value, _NAME_KEYS) or key, _first(value, _PURPOSE_KEYS) or "")


def _agent(key: str, value: Json) -> Declaration | None:
    """An agent with everything that is known of it: nobody can ask again under which id it runs."""
    if isinstance(value, str):
        return Declaration(key, value)
    if not isinstance(value, dict) or not value:
        return None
    names = (value[name] for name in _IDENT_KEYS if isinstance(value.get(name), str) and value[name].strip())
    told = {*_IDENT_KEYS, *_STATUS_KEYS, *_PURPOSE_KEYS, "type"}
    rest = {name: item for name, item in value.items() if name not in told and item not in (None, "", [], {})}
    parts = (_first(value, _PURPOSE_KEYS), json_text(rest) if rest else None)
    return Declaration(
        " ".join(dict.fromkeys(names)) or key,
        " ".join(part for part in parts if part),
        _first(value, _STATUS_KEYS) or "",
    )


def _first(value: Json, keys: tuple[str, ...]) -> str | None:
    """The first text that is not blank under one of the keys of an object."""
    if not isinstance(value, dict):
        return None
    return next((value[key] for key in keys if isinstance(value.get(key), str) and value[key].strip()), None)
