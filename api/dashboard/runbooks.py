"""The runbooks as pages: what an error code means and what to do, from the same files that alerts link to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

FOLDER = Path(__file__).resolve().parents[2] / "ops" / "runbooks"
CODES = "error-codes"
_ROW = re.compile(r"^\| `(?P<code>[a-z_]+)` \| (?P<happened>.+?) \| (?P<advice>.+?) \|$", re.MULTILINE)
_LINK = re.compile(r"\]\((?:\.\./)*(?:\w+/)*([A-Za-z-]+)\.md\)")


@dataclass(frozen=True, slots=True)
class Advice:
    """An error code: what happened, and what to do."""

    code: str
    happened: Markup
    advice: Markup


@cache
def advice() -> dict[str, Advice]:
    """Every error code that the runbook knows; none where the runbooks were not installed."""
    text = _texts().get(CODES, "")
    return {
        row["code"]: Advice(row["code"], _line(row["happened"]), _line(row["advice"])) for row in _ROW.finditer(text)
    }


def runbook(name: str) -> Markup | None:
    """A whole runbook as HTML."""
    text = _texts().get(name)
    return None if text is None else Markup(_markdown().render(_local(text)))  # noqa: S704 - our own files, raw HTML off


def names() -> list[str]:
    """The runbooks of alerts."""
    return sorted(name for name in _texts() if name != CODES)


@cache
def _texts() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}


def _line(text: str) -> Markup:
    return Markup(_markdown().renderInline(_local(text)))  # noqa: S704 - our own files, raw HTML off


def _local(text: str) -> str:
    """Links to other runbooks lead to their pages here."""
    return _LINK.sub(r"](/dashboard/help/\1)", text)


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")
