"""A result as a page for people: the sizes as a picture, the strategy in plain words, the summary in full."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from compaction.cli import output
from compaction.cli.inline import NO_SESSION
from compaction.cli.output import number, safe
from compaction.client import Result
from compaction.core.messages import message_from
from compaction.core.summary import extract_summary_text

BAR_CHARS = 40  # for the larger of the two sizes
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SECTION = re.compile(r"^\s*(?:#+\s*)?\d\.\s+\S")  # `1. Primary request and intent`

_STRATEGIES = {
    "microcompact": "microcompact: old tool results cleared, no summary written",
    "session_memory": "session_memory: the session's memory document as the summary",
    "shared_prefix": "shared_prefix: summary by the model, on the session's own cached prompt",
    "fresh": "fresh: summary by the model",
    "extractive": "extractive, made without a model: taken from the transcript itself",
}


def print_result(result: Result) -> None:
    """The whole page."""
    pairs: list[tuple[str, str | Text]] = [("Session", result["session_id"] or NO_SESSION), ("Job", result["job_id"])]
    output.show(output.facts([*pairs, *result_facts(result)]), *summary(result), api_messages_line(result))


def result_facts(result: Result) -> list[tuple[str, str | Text]]:
    """The lines about sizes, strategy and cost."""
    before, after = _before(result), result["post_tokens"]
    width = max(len(number(before)), len(number(after)))
    share = f"  −{100 - after * 100 / before:.0f} %" if 0 < after < before else ""
    lines: list[tuple[str, str | Text]] = [
        (
            "Tokens" if before == result["pre_tokens"] else "Tokens, estimated",
            _size("before", before, before, width, ""),
        ),
        ("", _size("after ", after, before, width, share)),
        ("Strategy", _strategy(result)),
    ]
    if result["cost_usd"] is not None:
        lines.append(("Cost", f"${result['cost_usd']:.4f}"))
    dropped = result["dropped"]
    if dropped["tokens"]:
        what = f"{number(dropped['messages'])} messages" if dropped["messages"] else "parts of long texts"
        lost = f"{what} ({number(dropped['tokens'])} tokens) did not fit the request"
        lines.append(("Left out", Text(f"{lost} and stand in no summary", style="yellow")))
    return lines


def _before(result: Result) -> int:
    """The size before, by the estimator of the size after: only what is measured alike can be compared.

    `pre_tokens` is the provider's own count where there is one, with everything that it adds to a request.
    """
    estimated = (result["boundary"].get("metadata") or {}).get("estimated_tokens")
    return estimated if isinstance(estimated, int) else result["pre_tokens"]


def summary(result: Result) -> Iterator[RenderableType]:
    """The summary in full, its section heads in bold."""
    yield ""
    for paragraph in summary_text(result).splitlines():
        style = "bold" if _SECTION.match(paragraph) else ""
        yield Padding(Text(safe(paragraph), style=style), (0, 0, 0, 2))
    yield ""


def summary_text(result: Result) -> str:
    """The text of the summary message; says so when there is none."""
    for value in result["messages"]:
        if value.get("is_compact_summary"):
            message = message_from(value)
            return extract_summary_text(message) or _plain_text(value["content"])
    return "(no summary: the history was rewritten in place)"


def api_messages_line(result: Result) -> Text:
    """How many messages are ready to send, and where."""
    session = result["session_id"]
    stored, came = f"GET /v1/sessions/{session}/messages?view=api", f"compactd result {result['job_id']} --json"
    where = f"ready to send: {came if session is None else stored}"
    return Text.assemble(("api_messages", "bold"), f"  {number(len(result['api_messages']))} {where}")


def bar(tokens: int, of_tokens: int, chars: int = BAR_CHARS) -> str:
    """`tokens` as a bar of which `of_tokens` fills `chars` characters; anything above 0 shows at least an eighth."""
    eighths = round(tokens * chars * 8 / of_tokens) if of_tokens > 0 else 0
    eighths = min(max(eighths, 1 if tokens > 0 else 0), chars * 8)
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _size(name: str, tokens: int, before: int, width: int, share: str) -> Text:
    return Text.assemble(f"{name}  {number(tokens):>{width}}  ", (bar(tokens, max(before, 1)), "cyan"), (share, "bold"))


def _strategy(result: Result) -> Text:
    text = Text(_STRATEGIES.get(result["strategy"], safe(result["strategy"])))
    if result["degraded"]:
        text.stylize("yellow")
        if result["strategy"] != "extractive":
            text.append(" (extractive, made without a model)")
    return text


def _plain_text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
