"""The texts that models read, kept as files in `texts/` beside this module.

They are part of the program, like its code, and are read once when the module is imported; nothing here reads a file
later.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from types import MappingProxyType

NAMES = (
    "analysis",
    "carry_on",
    "continuation",
    "earlier_kept",
    "ending_base",
    "ending_up_to",
    "instructions",
    "pinned",
    "preamble",
    "prior_summary",
    "recent_kept",
    "reminder",
    "rules",
    "sections",
    "shorter",
    "system",
    "task_base",
    "task_from",
    "task_up_to",
)

TEXTS = MappingProxyType(
    {name: files("compaction.core").joinpath("texts", f"{name}.txt").read_text("utf-8").strip() for name in NAMES}
)


def fingerprint() -> str:
    """A hash over all texts: it changes with every word, so that a test can ask for a new version number."""
    whole = "\0".join(f"{name}\0{TEXTS[name]}" for name in NAMES)
    return hashlib.sha256(whole.encode()).hexdigest()
