"""Reads docker-compose.yml as Compose does, as far as our file goes: anchors, `.env`, `${NAME:-default}`, `$$`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

VARIABLE = re.compile(r"\$(?:(\$)|\{([A-Z_]+)(?::([-?])([^}]*))?\})")


@dataclass(frozen=True, slots=True)
class Service:
    """What Compose would start: the command, the whole environment that is set for it, the healthcheck's command."""

    command: list[str]
    environ: dict[str, str]
    health: list[str]
    stop_seconds: int


def service(root: Path, name: str, env_file: Mapping[str, str]) -> Service:
    """The service as it would run beside this `.env`."""
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["services"][name]
    filled = _filled(found, env_file)
    given = dict(env_file) if "env_file" in found else {}
    return Service(
        command=list(filled.get("command", [])),
        environ=given | {key: str(value) for key, value in filled.get("environment", {}).items()},
        health=list(filled.get("healthcheck", {}).get("test", [])),
        stop_seconds=int(str(filled.get("stop_grace_period", "10s")).removesuffix("s")),
    )


def _filled(value: Any, env_file: Mapping[str, str]) -> Any:  # noqa: ANN401 - YAML
    if isinstance(value, dict):
        return {key: _filled(one, env_file) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, env_file) for one in value]
    return VARIABLE.sub(lambda found: _value(found, env_file), value) if isinstance(value, str) else value


def _value(found: re.Match[str], env_file: Mapping[str, str]) -> str:
    dollar, name, kind, words = found.groups()
    if dollar:
        return "$"
    if value := env_file.get(name):
        return value
    assert kind != "?", f"{name}: {words}"
    return words or ""
