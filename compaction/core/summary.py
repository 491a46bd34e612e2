"""A model's reply judged and cleaned, and the summary's place in the compacted conversation.

`validate` takes the reply apart and refuses what is no summary; `compact_text` is what stands in the history
afterwards, and `extract_summary_text` gets the summary out of it again, so that the next compaction updates it
instead of nesting it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

from compaction.core import characters, jsonbytes, sections
from compaction.core.messages import Message
from compaction.core.wording import TEXTS
from compaction.errors import ApiError, NoSummary, Refusal, SummaryTruncated
from compaction.ports import SummaryReply

MIN_SECTIONS = 5  # DESIGN §3: of nine, without tags
MIN_LETTERS = 16  # beside headings and fillers; "as discussed" under one heading is still no summary
MAX_FILLER_CHARS = 200  # a longer text is no placeholder
MAX_CALL_CHARS = 1_000_000  # JSON longer than this is not looked at; no tool call is

MAX_LEVELS = 100  # of summaries inside each other; 31 were met (DESIGN §3), and each level reads the whole text
HEADING = "Summary of the earlier conversation:"  # `extract_summary_text` finds the summary behind it; never reword it
_PINNED = "Standing constraints of the user, word for word:"

_TAG = re.compile(r"<[ \t]{0,3}(?P<end>/?)[ \t]{0,3}(?P<name>analysis|summary)[ \t]{0,3}>", re.IGNORECASE)
_HALF_TAG = re.compile(r"</[a-z]{0,10}$", re.IGNORECASE)
_MARKUP = re.compile(
    r"[ \t]{0,8}(?:<[a-z]{0,10}:?(?:tool_calls?|tool_use|function_calls?|function=|invoke)\b"
    r"|<\|[a-z_]{0,20}tool|\[TOOL_CALL)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"[\[(<][^\n]*[\])>]|[.…\-–*_ \t]+|none\.?|n/?a\.?|tbd\.?|todo\.?|empty\.?|"
    r"(?:no|your|the|insert|conversation|session)?[ \t]{0,3}summar(?:y|ized)(?: goes| text| available)?(?: here)?[.:]?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A usable summary: its text without analysis and tags. `sections_found` are numbers from 1 to 9."""

    text: str
    had_tags: bool
    sections_found: tuple[int, ...]


def validate(reply: SummaryReply) -> Summary:
    """The summary in `reply` (DESIGN §3 "Validate").

    Raises ApiError (retryable) when the stream ended without a stop reason, Refusal, SummaryTruncated when the reply
    broke off, NoSummary when there is no usable summary in it: no text, a tool call, no tags and fewer than five
    sections, a placeholder.
    """
    _check_stop(reply)
    raw = characters.clean_text(reply.text, Counter())  # neither Postgres nor UTF-8 carries the rest
    if not raw.strip():
        raise NoSummary("The model answered without text.")
    tagged = _tagged(raw)
    text = _folded(_bare(tagged) if tagged is not None else _untagged(raw))
    if _is_placeholder(text):
        raise NoSummary("The model's summary says nothing.")
    if _is_tool_call(text):
        raise NoSummary("The model answered with a tool call as text.")
    found = sorted({heading.number for heading in sections.headings(text)})
    return Summary(text, tagged is not None, tuple(found))


def compact_text(
    summary: str,
    *,
    kept_tail: bool = False,
    kept_earlier: bool = False,
    auto: bool = False,
    pinned: tuple[str, ...] = (),
) -> str:
    """The text of the user message that stands for the summarised part.

    `kept_tail`: recent messages follow word for word. `kept_earlier`: older ones do, because of the one order that a
    result has (scope `from`). `auto`: nobody is waiting with a new request, the agent goes on
    by itself. `pinned` are standing constraints to be
    stated again. A summary that was wrapped like this before is unwrapped first.
    """
    parts = [TEXTS["continuation"]]
    if pinned:
        parts.append("\n".join((_PINNED, *(f"- {text}" for text in pinned))))
    parts += [HEADING, _unwrapped(summary)]
    if kept_earlier:
        parts.append(TEXTS["earlier_kept"])
    if kept_tail:
        parts.append(TEXTS["recent_kept"])
    if auto:
        parts.append(TEXTS["carry_on"])
    return "\n\n".join(parts)


def extract_summary_text(message: Message) -> str | None:
    """The summary inside a summary message, without what `compact_text` put around it; None when it is no such message.

    A summary of another system is taken from its first section on where it has sections, else as it is.
    """
    if not message.is_compact_summary:
        return None
    blocks = message.blocks()
    text = "\n\n".join(
        block["text"] for block in blocks if block["type"] == "text" and isinstance(block.get("text"), str)
    )
    ours = _unwrapped(text)
    start = _start_of_sections(text) if ours == text.strip() else None
    return (ours if start is None else text[start:]).strip() or None


def _check_stop(reply: SummaryReply) -> None:
    reason = reply.stop_reason
    if reason is None:
        text = "The answer of the model's API broke off before its end."
        raise ApiError(text, retryable=True, request_id=reply.request_id)
    if reason == "refusal":
        raise Refusal
    if reason in {"max_tokens", "model_context_window_exceeded"}:
        raise SummaryTruncated
    if reason == "stop_sequence":
        raise SummaryTruncated("The model's summary ended early, at a stop sequence of the session.")
    if reason == "tool_use":
        raise NoSummary("The model called a tool instead of writing the summary.")
    if reason != "end_turn":
        raise NoSummary("The model did not finish its answer.")


def _tagged(text: str) -> str | None:
    """What stands between the summary's own tags, None without an opening one. Raises NoSummary when it broke off."""
    opening = _opening(text)
    if opening is None:
        return None
    inner = text[opening.end() :]
    closing = _closing(inner)
    if closing is not None:
        return _without_analysis(inner[: closing.start()])
    whole = _untagged(inner)
    if sections.LAST not in {heading.number for heading in sections.headings(whole)}:
        raise NoSummary("The model's summary breaks off before its last section.")
    return whole


def _opening(text: str) -> re.Match[str] | None:
    """The tag that opens the summary: the first tag of all, or the one behind the analysis, however that was closed."""
    tags = list(_TAG.finditer(text))
    opens = [tag for tag in tags if _is(tag, "summary")]
    if not opens or opens[0] is tags[0]:
        return opens[0] if opens else None
    for one, other in pairwise(tags):
        if _is(one, "/analysis") and _is(other, "summary") and not text[one.end() : other.start()].strip():
            return other
    analysis_end = next((tag.end() for tag in tags if _is(tag, "/analysis")), 0)
    after = [tag for tag in opens if tag.start() >= analysis_end] or opens
    return next((tag for tag in after if _starts_line(text, tag)), after[0])


def _closing(inner: str) -> re.Match[str] | None:
    """The tag that closes the summary: the last one, unless it belongs to a literal pair inside the summary."""
    ends = [tag for tag in _TAG.finditer(inner) if _is(tag, "/summary")]
    if not ends:
        return None
    last, rest = ends[-1], inner[ends[-1].end() :]
    if not rest.strip():
        return last
    if sections.headings(rest):
        return None
    literal = sum(_is(tag, "summary") for tag in _TAG.finditer(inner))
    return last if len(ends) > literal or _starts_line(inner, last) else None


def _is(tag: re.Match[str], name: str) -> bool:
    return bool(tag["end"] + tag["name"].lower() == name)


def _starts_line(text: str, tag: re.Match[str]) -> bool:
    return not text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()].strip()


def _without_analysis(text: str) -> str:
    """The text behind an analysis that it begins with; from the first section on when the analysis is not closed."""
    first = _TAG.match(text.lstrip())
    if first is None or not _is(first, "analysis"):
        return text
    end = next((tag for tag in _TAG.finditer(text) if _is(tag, "/analysis")), None)
    return text[end.end() :] if end is not None else _untagged(text)


def _bare(text: str) -> str:
    """The text without a second pair of summary tags right inside the first."""
    text = text.strip()
    tags = list(_TAG.finditer(text))
    for _ in range(MAX_LEVELS):
        if not (len(tags) > 1 and _is(tags[0], "summary") and _is(tags[-1], "/summary")):
            break
        if tags[0].start() or tags[-1].end() != len(text):
            break
        text = text[tags[0].end() : tags[-1].start()].strip()
        tags = list(_TAG.finditer(text))
    return text


def _untagged(text: str) -> str:
    """A summary without (closed) tags: from its first section on. Raises NoSummary with fewer than five sections."""
    start = _start_of_sections(text)
    if start is None:
        raise NoSummary("The model went on with the conversation instead of summarising it.")
    whole = text[start:].rstrip()
    if any(_MARKUP.match(line) for line in _unfenced(whole)):
        raise NoSummary("The model answered with a tool call as text.")
    stray = next((tag for tag in _TAG.finditer(whole) if tag["end"] and tag.end() == len(whole)), None)
    return _HALF_TAG.sub("", whole) if stray is None else whole[: stray.start()]


def _unfenced(text: str) -> Iterator[str]:
    """The lines of `text` that stand in no code fence."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield line


def _start_of_sections(text: str) -> int | None:
    """Where the last list of at least five sections begins (an analysis may hold a draft of them), None without one."""
    found = sections.headings(text)
    starts = [index for index, heading in enumerate(found) if heading.number == 1][::-1] or [0]
    numbers: set[int] = set()
    behind = len(found)  # the headings from here on are in `numbers`
    for index in (*starts, 0):
        numbers.update(heading.number for heading in found[index:behind])
        behind = min(behind, index)
        if len(numbers) >= MIN_SECTIONS:
            return found[index].start
    return None


def _is_placeholder(text: str) -> bool:
    """Whether beside headings and fillers (`[…]`, none, n/a) too little is said to go on with."""
    lines = (line.strip(" \t:\uff1a*_-") for line in sections.without_headings(text).splitlines())
    words = (line for line in lines if len(line) > MAX_FILLER_CHARS or not _FILLER.fullmatch(line))
    letters = (character for line in words for character in line if character.isalnum())
    return sum(1 for _ in islice(letters, MIN_LETTERS)) < MIN_LETTERS


def _is_tool_call(text: str) -> bool:
    """Whether the text is nothing but a tool call: call markup, or JSON with a name and arguments."""
    if sections.headings(text):
        return False
    plain = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if _MARKUP.match(plain):
        return True
    if not plain.startswith(("{", "[")) or len(plain) > MAX_CALL_CHARS:
        return False
    try:
        value = jsonbytes.decode(plain)
    except ValueError:
        return False
    call = value[0] if isinstance(value, list) and value else value
    return isinstance(call, dict) and bool(call.keys() & {"name", "tool", "function", "tool_name"}) and len(call) > 1


def _unwrapped(text: str) -> str:
    """The innermost summary of texts that `compact_text` made; other texts as they are."""
    for _ in range(MAX_LEVELS):
        before, heading, after = f"\n{text.strip()}\n".partition(f"\n{HEADING}\n")
        if not heading or sections.headings(before):
            return text.strip()
        text = after
        for name in ("carry_on", "recent_kept", "earlier_kept"):
            text = text.rstrip().removesuffix(TEXTS[name])
    return text.strip()


def _folded(text: str) -> str:
    """The text with at most one blank line between two others."""
    lines = groupby((line.rstrip() for line in text.strip().splitlines()), key=bool)
    return "\n".join("\n".join(group) if filled else "" for filled, group in lines)
