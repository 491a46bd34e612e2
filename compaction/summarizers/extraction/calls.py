"""A tool call: what kind of act it was and on what, read from its block whatever the producer's tools are called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block

Kind = Literal["read", "edit", "write", "command", "search", "todo", "question", "plan", "agent", "other"]

# Tool names without case, `_` and `-`: Claude Code, Codex, Cline, OpenHands, SWE-agent, Gemini CLI and their kin.
_KIND_NAMES: dict[Kind, str] = {
    "read": "read readfile readmanyfiles notebookread viewfile view openfile open cat",
    "edit": "edit multiedit notebookedit editfile strreplace replaceinfile replace applypatch applydiff "
    "patch insert updatefile",
    "write": "write writefile writetofile createfile create savefile",
    "command": "bash powershell shell run runcommand executecommand executebash exec execcommand localshell "
    "runshellcommand terminal",
    "search": "grep glob ls search find searchfiles listfiles listdirectory ripgrep codesearch websearch webfetch "
    "fetch toolsearch",
    "todo": "todowrite taskcreate taskupdate updateplan writetodos",
    "question": "askuserquestion askfollowupquestion askuser",
    "plan": "exitplanmode",
    "agent": "task agent spawnagent dispatchagent",
}
_KINDS: dict[str, Kind] = {name: kind for kind, names in _KIND_NAMES.items() for name in names.split()}
_EDITOR_NAMES = frozenset({"strreplacebasededittool", "strreplaceeditor"})  # one tool, the act is in input.command
_EDITOR_KINDS: dict[str, Kind] = {"view": "read", "create": "write"}
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "file", "filename", "absolute_path", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_NEW_KEYS = ("new_string", "new_str", "content", "file_text", "new_source", "code_edit", "insert_text", "replacement")
_OLD_KEYS = ("old_string", "old_str", "old")
_PATCH_KEYS = ("input", "patch", "diff", "command")
_GIST_KEYS = ("description", "query", "pattern", "url", "prompt", "title", "skill", "subject", "name", "path", "plan")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S[^\n]{0,500})", re.MULTILINE)
_PATCH_MARK = "*** Begin Patch"
MAX_PATCH_CHARS = 200_000  # of a patch, what is searched for file names
MAX_PATCH_FILES = 50  # of one call


@dataclass(frozen=True, slots=True)
class Call:
    """A call as far as a summary needs it. `path` and `command` are empty where the kind has none."""

    name: str
    kind: Kind
    paths: tuple[str, ...] = ()
    command: str = ""
    old_text: str = ""
    new_text: str = ""
    gist: str = ""
    input: Json = None

    @property
    def path(self) -> str:
        """The first file of the call, or nothing."""
        return self.paths[0] if self.paths else ""

    @property
    def changes_files(self) -> bool:
        """Whether the call was meant to change a file."""
        return self.kind in ("edit", "write") and bool(self.paths)


def is_call(block: Block) -> bool:
    """Whether the block is a call: tool_use, server_tool_use, mcp_tool_use."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_use")


def call_from(block: Block) -> Call:
    """The call in a block; a missing name or an input that is no object is taken as it is."""
    name = block.get("name")
    name = name if isinstance(name, str) and name.strip() else "unnamed tool"
    given = block.get("input")
    fields: Mapping[str, Json] = given if isinstance(given, dict) else {"input": given}
    kind = _kind(name, fields)
    command = _command(fields) if kind == "command" else ""
    paths = _paths(kind, fields)
    if kind == "command" and _PATCH_MARK in command:
        kind, paths = "edit", _patch_files(command)
    return Call(
        name=name,
        kind=kind,
        paths=paths,
        command=command,
        old_text=_old_text(fields),
        new_text=_new_text(fields),
        gist=_first_text(fields, _GIST_KEYS),
        input=given,
    )


def _kind(name: str, fields: Mapping[str, Json]) -> Kind:
    bare = name.rsplit("__", 1)[-1].replace("_", "").replace("-", "").casefold()
    if bare in _EDITOR_NAMES:
        return _EDITOR_KINDS.get(str(fields.get("command")), "edit")
    return _KINDS.get(bare, "other")


def _command(fields: Mapping[str, Json]) -> str:
    for key in (*_COMMAND_KEYS, "input"):
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value:
            return _argv(value)
    return ""


def _argv(words: list[Json]) -> str:
    texts = [word for word in words if isinstance(word, str)]
    shell = len(texts) > 1 and texts[0].endswith("sh") and texts[1].startswith("-")
    return " ".join(texts[2:] if shell else texts).strip()


def _paths(kind: Kind, fields: Mapping[str, Json]) -> tuple[str, ...]:
    if kind not in ("read", "edit", "write"):
        return ()
    path = _first_text(fields, _PATH_KEYS)
    if path:
        return (path,)
    for key in _PATCH_KEYS:
        value = fields.get(key)
        if isinstance(value, str) and _PATCH_MARK in value:
            return _patch_files(value)
    return ()


def _patch_files(patch: str) -> tuple[str, ...]:
    found = (match.group(1).strip() for match in _PATCH_FILE.finditer(patch, 0, MAX_PATCH_CHARS))
    return tuple(dict.fromkeys(found))[:MAX_PATCH_FILES]


def _edits(fields: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    edits = fields.get("edits")
    return [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []


def _new_text(fields: Mapping[str, Json]) -> str:
    edits = _edits(fields)
    return _first_text(edits[-1] if edits else fields, _NEW_KEYS)


def _old_text(fields: Mapping[str, Json]) -> str:
    edits = _edits(fields)
    return _first_text(edits[-1] if edits else fields, _OLD_KEYS)


def _first_text(fields: Mapping[str, Json], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""
