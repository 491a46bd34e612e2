"""The prompts that ask for a summary: put together from the texts in `texts/`, which `wording` read at import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction.core.wording import TEXTS

PROMPT_VERSION = 2  # raised with every change of wording; a test compares it with the fingerprint of the texts
MAX_INSTRUCTION_CHARS = 16_384  # what the API takes for its own compaction instructions (facts/anthropic.md §3a)

Kind = Literal["base", "from", "up_to"]
RequestKind = Literal["fresh", "shared_prefix"]

_TASKS: dict[Kind, tuple[str, str]] = {
    "base": ("task_base", "ending_base"),
    "from": ("task_from", "ending_base"),
    "up_to": ("task_up_to", "ending_up_to"),
}
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_WANTED = "compact instructions"


@dataclass(frozen=True, slots=True)
class Prompts:
    """`system` goes before the transcript and is empty for a shared prefix, which has its own; `user` goes after it."""

    system: str
    user: str


def build_prompts(  # noqa: PLR0913 - what a prompt can depend on
    kind: Kind,
    *,
    request_kind: RequestKind = "fresh",
    prior_summary: bool = False,
    instructions: tuple[str, ...] = (),
    pinned: tuple[str, ...] = (),
    shorter: bool = False,
) -> Prompts:
    """The prompts of one request.

    `kind`: base summarises everything, from the recent part, up_to the prefix that newer messages follow.
    `prior_summary` says that an earlier summary stands at the head of the messages and is to be brought up to date.
    `instructions` are appended in their order, blank ones left out; `pinned` are the user's standing constraints,
    word for word; `shorter` asks for less after a summary that broke off.
    """
    task, ending = _TASKS[kind]
    given = tuple(text.strip()[:MAX_INSTRUCTION_CHARS] for text in instructions if text.strip())
    parts = [TEXTS["preamble"], TEXTS[task], TEXTS["analysis"], TEXTS["rules"], f"{TEXTS['sections']}\n{TEXTS[ending]}"]
    if prior_summary:
        parts.append(TEXTS["prior_summary"])
    if pinned:
        parts.append("\n".join((TEXTS["pinned"], *(f"- {text}" for text in pinned))))
    if given:
        parts.append("\n\n".join((TEXTS["instructions"], *given)))
    if shorter:
        parts.append(TEXTS["shorter"])
    parts.append(TEXTS["reminder"])
    return Prompts(TEXTS["system"] if request_kind == "fresh" else "", "\n\n".join(parts))


def compact_instructions(claude_md: str) -> str | None:
    """What stands under `## Compact Instructions` in a CLAUDE.md, None when nothing does.

    The heading may have any level and letter case; its part ends at the next heading of the same or a higher level.
    Lines inside code fences are no headings. Several such parts are joined in their order.
    """
    text = "\n".join(_instruction_lines(claude_md)).strip()
    return text[:MAX_INSTRUCTION_CHARS] or None


def _instruction_lines(claude_md: str) -> Iterator[str]:
    level = 0  # of the heading whose part we are in; 0 outside
    fence: str | None = None
    for line in claude_md.splitlines():
        fence = _fence_after(fence, line)
        heading = None if fence else _HEADING.fullmatch(line)
        if heading and not (level and len(heading[1]) > level):
            level = len(heading[1]) if heading[2].rstrip(":").casefold() == _WANTED else 0
            if level:
                yield ""  # between two such parts
        elif level:
            yield line


def _fence_after(fence: str | None, line: str) -> str | None:
    """The fence that is open after `line`."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if fence is None:
        return found[1]
    return None if found[1] == fence else fence
