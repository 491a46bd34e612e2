"""Which metrics the processes serve, told by their registries, and which ones a text names."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry

from api.metrics import REGISTRY as API
from worker.gauges import NAMES
from worker.metrics import REGISTRY as WORKER

_NAME = re.compile(r"\bcompaction_[a-z_]+")
_SUFFIX = re.compile(r"_(bucket|count|sum|created)$")  # of the series that one histogram has


def served() -> set[str]:
    """The families that API and leading worker tell, a counter with its `_total`."""
    return _families(API) | _families(WORKER) | set(NAMES)


def named_in(text: str) -> set[str]:
    """The families that the text names."""
    return {_SUFFIX.sub("", name) for name in _NAME.findall(text)}


def _families(registry: CollectorRegistry) -> set[str]:
    return {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}
