"""What the sample's tools answer: a call of the scenario becomes an input and a result, true to the project's files."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.cli.sample.pytest_output import pytest_output
from compaction.cli.sample.scenario import Call
from compaction.cli.sample.tree import Tree, numbered

ROOT = "/srv/ledgerline/invoicing"  # where the made-up project lies
MAX_GREP_LINES = 80  # what the search tool shows at most
_TODO_STATES = {"x": "completed", ">": "in_progress", "-": "pending"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished call: its input, the result's text as the model sees it, and what the client keeps beside it."""

    name: str
    input: dict[str, Any]
    text: str
    kept: Any = field(default_factory=dict)
    is_error: bool = False
    seconds: float = 0.1


def answer(call: Call, tree: Tree, rng: random.Random) -> Answer:
    """Carry the call out on the project. Raises KeyError or ValueError where the scenario does not fit it."""
    return _TOOLS[call.tool](call.fields, tree, rng)


def _read(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del rng
    path, rows = fields["path"], tree.lines(fields["path"])
    kept = {"type": "text", "file": {"filePath": f"{ROOT}/{path}", "numLines": len(rows), "totalLines": len(rows)}}
    return Answer("Read", {"file_path": f"{ROOT}/{path}"}, numbered(rows), kept)


def _grep(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del rng
    under = fields.get("path", "")
    found = list(tree.grep(fields["pattern"], under))
    text = "\n".join(found[:MAX_GREP_LINES]) or "No matches found"
    given = {"pattern": fields["pattern"], "path": f"{ROOT}/{under}".rstrip("/"), "output_mode": "content"}
    return Answer("Grep", given, text, {"mode": "content", "numLines": len(found)}, seconds=0.3)


def _glob(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del rng
    found = tree.glob(fields["pattern"])
    text = "\n".join(f"{ROOT}/{path}" for path in found)
    return Answer("Glob", {"pattern": fields["pattern"]}, text, {"numFiles": len(found), "truncated": False})


def _edit(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del rng
    path, old, new = fields["path"], fields["old"].rstrip("\n"), fields["new"].rstrip("\n")
    given = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    if "error" in fields:
        return Answer("Edit", given, fields["error"], f"Error: {fields['error']}", is_error=True)
    shown = tree.edit(path, old, new)
    kept = {"filePath": f"{ROOT}/{path}", "oldString": old, "newString": new, "replaceAll": False}
    return Answer("Edit", given, f"Edited {ROOT}/{path}. The place now reads:\n{shown}", kept)


def _write(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del rng
    path, text = fields["path"], fields["text"]
    known = path in tree.glob(path)
    tree.write(path, text)
    kept = {"type": "update" if known else "create", "filePath": f"{ROOT}/{path}"}
    done = "Replaced" if known else "Created"
    return Answer("Write", {"file_path": f"{ROOT}/{path}", "content": text}, f"{done} {ROOT}/{path}", kept)


def _bash(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    given = {"command": fields["command"], "description": fields["description"]}
    if "rejected" in fields:
        return Answer("Bash", given, fields["rejected"], "User rejected tool use", is_error=True, seconds=8.0)
    failed = bool(fields.get("failed", fields.get("failure")))
    text = _printed(fields, tree, rng)
    kept: Any = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    if failed:
        text = f"Exit code 1\n{text}"
        kept = f"Error: {text}"
    return Answer("Bash", given, text, kept, is_error=failed, seconds=rng.uniform(0.4, 11.0))


def _printed(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> str:
    if "pytest" in fields:
        verbose = fields.get("verbose", False)
        return pytest_output(tree, rng, fields["pytest"], fields.get("failure", ()), verbose=verbose)
    if "show" in fields:
        return "\n".join(tree.lines(fields["show"])[-fields["lines"] :])
    return str(fields["output"]).rstrip()


def _todo(fields: Mapping[str, Any], tree: Tree, rng: random.Random) -> Answer:
    del tree, rng
    todos = [_task(row) for row in fields["todos"]]
    return Answer("TodoWrite", {"todos": todos}, "The task list was updated.", {"newTodos": todos})


def _task(row: str) -> dict[str, str]:
    mark, _, content = row.partition(" ")
    return {"content": content, "status": _TODO_STATES[mark], "activeForm": content}


_TOOLS: dict[str, Callable[[Mapping[str, Any], Tree, random.Random], Answer]] = {
    "Read": _read,
    "Grep": _grep,
    "Glob": _glob,
    "Edit": _edit,
    "Write": _write,
    "Bash": _bash,
    "TodoWrite": _todo,
}
