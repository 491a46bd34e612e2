"""How a tool call ended, judged from its result block alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block
from compaction.summarizers.extraction.excerpts import clean

Verdict = Literal["ok", "failed", "rejected", "open"]

HEAD_CHARS = 2_000  # of a result, where exit codes and first errors stand
TAIL_CHARS = 4_000  # of a result, where test runners and tracebacks put their verdict
_REJECTED = ("The user doesn't want to", "User rejected", "The tool use was rejected")
_SAID = "the user said:"  # Claude Code puts the reason that a user typed behind these words
# Signs of failure in the output of a command that did not say so itself (its exit status got lost in a pipe).
_FAILED = re.compile(
    r"^Exit code [1-9]"
    r"|\bexit(?:ed)?(?: with)?[ _](?:code|status)\"?:? [1-9]"
    r"|^Traceback \(most recent call last\)"
    r"|\b[1-9]\d{0,5} (?:failed|failures?)\b"
    r"|^\s{0,8}--- FAIL|^FAIL\b|^FAILED\b|^BUILD FAILED|^panic: |^fatal: |^npm ERR!"
    r"|^error(?:\[E\d+\])?: |: command not found",
    re.MULTILINE,
)
# The lines of an output that say what went wrong, best first: the message itself, then the verdict, then any hint.
_TELLING = (
    re.compile(
        r"^E\s{2,}\S|^\w*(?:\.\w+){0,6}(?:Error|Exception)\b|^panic: |^fatal: |^error(?:\[E\d+\])?: |\bERROR: "
        r"|^[\w./@-]{1,200}\.\w{1,5}:\d+(?::\d+)?:? \S",  # file, line and message of a compiler or linter
        re.IGNORECASE,
    ),
    re.compile(
        r"--- FAIL|^FAILED\b|^FAIL\b|Error:|error:|^DETAIL:|\bassert|command not found|No such file|denied|undefined:"
        r"|not found"
    ),
    re.compile(r"\b(?:errors?|fail(?:ed|s|ure)?|cannot|invalid|missing|refused|timed? ?out)\b", re.IGNORECASE),
)
_RULE = "=_*─ "  # what test runners underline their headings with
_WRAPPING = re.compile(r"</?tool_use_error>")
MAX_LINE_CHARS = 240  # of a line that is judged or shown; longer ones are data


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a call. `text` is the result's text, head and tail where it is long."""

    verdict: Verdict
    text: str = ""

    @property
    def failed(self) -> bool:
        """Whether the call failed by itself; a user's refusal is no failure."""
        return self.verdict == "failed"


OPEN = Outcome("open")


def is_result(block: Block) -> bool:
    """Whether the block answers a call: tool_result, web_search_tool_result, mcp_tool_result."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def outcome_from(block: Block, *, is_command: bool) -> Outcome:
    """The outcome in a result block. Only a command's output is searched for signs of failure: others quote files."""
    text = _ends(_text_of(block.get("content")))
    if "\x1b" in text:
        text = clean(text)  # colours hide where a line begins
    if text.lstrip().startswith(_REJECTED):
        return Outcome("rejected", text)
    if block.get("is_error") is True or (is_command and _FAILED.search(text)):
        return Outcome("failed", text)
    return Outcome("ok", text)


def said_by_user(outcome: Outcome) -> str:
    """What the user typed when refusing a call, or nothing."""
    _, found, words = outcome.text.partition(_SAID)
    return words.strip() if found and outcome.verdict == "rejected" else ""


def telling_lines(text: str, limit: int) -> list[str]:
    """Up to `limit` lines that say what went wrong; failing any, the first lines that are not blank."""
    rows = [shown for row in _WRAPPING.sub("", text).splitlines() if (shown := _told(row))]
    chosen: list[int] = []
    for pattern in _TELLING:
        fitting = [index for index, row in enumerate(rows) if index not in chosen and pattern.search(row)]
        chosen.extend(_ends_of(fitting, limit - len(chosen)))
    picked = sorted(chosen) or [index for index, row in enumerate(rows) if not row.startswith("Exit code")][:limit]
    return list(dict.fromkeys(rows[index] for index in picked))


def _told(row: str) -> str:
    bare = row.strip()[:MAX_LINE_CHARS]
    return bare if bare.strip(_RULE) == bare else bare.strip(_RULE).replace("FAILURES", "")


def _ends_of(indexes: list[int], limit: int) -> list[int]:
    """Of many lines the first, where compilers begin, and the last, where test runners conclude."""
    if len(indexes) <= limit:
        return indexes
    tail = limit // 2
    return [*indexes[: limit - tail], *indexes[len(indexes) - tail :]]


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _ends(text: str) -> str:
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    return f"{text[:HEAD_CHARS]}\n{text[len(text) - TAIL_CHARS :]}"
