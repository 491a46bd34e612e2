"""The written part of the sample: what the user and the agent say and do, step by step, from scenario/*.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

PACKAGE = "compaction.cli.sample"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as it is written: the tool's name and the fields that its result is made from."""

    tool: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """Either a user message after a pause, or one answer of the model: thinking, words and calls, each optional."""

    user: str = ""
    pause_minutes: int = 0
    think: str = ""
    say: str = ""
    calls: tuple[Call, ...] = ()


def data_file(*names: str) -> Traversable:
    """A data file of this package."""
    return resources.files(PACKAGE).joinpath(*names)


def table(*names: str) -> dict[str, Any]:
    """The TOML file of that name."""
    return tomllib.loads(data_file(*names).read_text("utf-8"))


@cache
def steps() -> tuple[Step, ...]:
    """All steps, the parts in the order of their names."""
    parts = sorted(part.name for part in data_file("scenario").iterdir() if part.name.endswith(".toml"))
    return tuple(_step(row) for part in parts for row in table("scenario", part)["step"])


def _step(row: dict[str, Any]) -> Step:
    calls = tuple(Call(call["tool"], {key: call[key] for key in call if key != "tool"}) for call in row.get("call", ()))
    texts = {key: row[key].strip() for key in ("user", "think", "say") if key in row}
    return Step(pause_minutes=row.get("pause_minutes", 0), calls=calls, **texts)
