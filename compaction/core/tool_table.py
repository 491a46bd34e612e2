"""Which tools' results may be cleared, and what kind of tool a name stands for, whatever a producer calls it.

Names are compared without letter case, `_`, `-`, dots and spaces: read_file, ReadFile and read-file are one name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block

SETTING = "compactable_tools"  # the session setting that changes the table
MAX_SETTINGS = 200  # entries of that setting; more than any agent has tools
MAX_NAME_CHARS = 128  # the API's own limit for tool names (core/fields.py, TOOL_NAME)

# DESIGN §3: the tools whose results can be had again by calling them again, under the names of Claude Code. Behind each
# what other agents call it: Codex, Gemini CLI, Cline, OpenHands, SWE-agent, Goose and their kin.
_ALIASES = {
    "Read": "read readfile readfiles readmanyfiles readtextfile notebookread viewfile view openfile cat",
    "Bash": "bash shell localshell run runcommand runcommands runshellcommand executecommand executebash exec "
    "execcommand terminal runterminalcmd bashoutput",
    "PowerShell": "powershell pwsh",
    "Grep": "grep grepsearch ripgrep rg searchfiles searchfilecontent codesearch",
    "Glob": "glob globsearch findfiles listfiles listdirectory listdir ls",
    "WebSearch": "websearch googlewebsearch searchweb",
    "WebFetch": "webfetch fetchurl fetchwebpage",
    "Edit": "edit multiedit notebookedit editfile strreplace strreplaceeditor strreplacebasededittool replaceinfile "
    "replace applypatch applydiff",
    "Write": "write writefile writetofile createfile savefile",
}
KINDS = tuple(_ALIASES)
OTHER = "Other"  # a tool of the producer's own that its setting declares clearable
# DESIGN §3: never cleared, whatever a setting says. What they return is said once: by the user, or by a finished agent.
_NEVER = frozenset(
    ["askuserquestion", "askuser", "askfollowupquestion", "agent", "task", "spawnagent", "dispatchagent"]
)

_JOINTS = re.compile(r"[_\-.\s]+")
_BUILT_IN = MappingProxyType({alias: kind for kind, names in _ALIASES.items() for alias in names.split()})


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The kind of each clearable tool by its plain name. `problems` says which entries of the setting were ignored."""

    kinds: Mapping[str, str] = field(default_factory=lambda: _BUILT_IN)
    problems: tuple[str, ...] = ()

    def kind(self, name: Json) -> str | None:
        """Read, Bash, … or Other for a tool whose results may be cleared; None for all others."""
        return self.kinds.get(_plain(name)) if isinstance(name, str) else None

    def compactable(self, name: Json) -> bool:
        """Whether results of this tool may be cleared."""
        return self.kind(name) is not None

    def kind_of_call(self, block: Block) -> str | None:
        """The kind of one call; an editor that views, creates and edits says in its input which it does."""
        kind, given = self.kind(block.get("name")), block.get("input")
        if kind == "Edit" and isinstance(given, dict):
            return {"view": "Read", "create": "Write"}.get(str(given.get("command")), kind)
        return kind


def tool_table(settings: Mapping[str, Json] | None = None) -> ToolTable:
    """The table of a session: the built-in one, changed by its setting `compactable_tools`.

    The setting is an object: a tool's name → true (clearable), false (not), or the built-in tool that it works like
    ("Read"). Whatever else stands there is ignored and noted in `problems`, which name places and never values.
    """
    given = (settings or {}).get(SETTING)
    if given is None:
        return ToolTable()
    if not isinstance(given, dict):
        return ToolTable(problems=(f"{SETTING} must be an object of tool names; it is ignored.",))
    kinds = dict(_BUILT_IN)
    problems = []
    for place, (name, value) in enumerate(given.items(), 1):
        wrong = "is over the limit" if place > MAX_SETTINGS else _apply(kinds, name, value)
        if wrong:
            problems.append(f"Entry {place} of {SETTING} {wrong}; it is ignored.")
    return ToolTable(MappingProxyType(kinds), tuple(problems[:MAX_SETTINGS]))


def _apply(kinds: dict[str, str], name: str, value: Json) -> str | None:
    """Changes `kinds` by one entry of the setting; what is wrong with it, None when nothing is."""
    plain = _plain(name)
    if not plain:
        return "is no tool name"
    if value is False:
        kinds.pop(plain, None)
        return None
    kind = _BUILT_IN.get(_plain(value)) if isinstance(value, str) else None
    if value is True:
        kind = kinds.get(plain, OTHER)
    if kind is None:
        return "must be true, false or the name of a built-in tool"
    if plain in _NEVER:
        return "names a tool whose results are never cleared"
    kinds[plain] = kind
    return None


@lru_cache(maxsize=1024)  # more names than any session has tools
def _plain(name: str) -> str:
    return _JOINTS.sub("", name).casefold() if len(name) <= MAX_NAME_CHARS else ""
