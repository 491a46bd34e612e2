"""The report of a bulk run as a page for people: one file, charts as inline SVG, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from pathlib import Path
from string import Template

from compaction.core.bulk_report import BulkReport, Distribution, bucket_label
from compaction.store.bulk_runs import RunRow

_TEMPLATE = Template((Path(__file__).parent / "pages" / "bulk_report.html").read_text("utf-8"))
WIDTH = 720  # of a chart, in its own units
ROW_HEIGHT = 26
LABEL_WIDTH = 180
BAR_WIDTH = WIDTH - LABEL_WIDTH - 110  # the number behind the bar needs the rest
CHART_HEIGHT = 180
NOTHING = "<p>None.</p>"


def bulk_page(run: RunRow, report: BulkReport) -> str:
    """The page. Every text that a producer chose is escaped."""
    before = sum(share.before for share in report.strategies)
    after = sum(share.after for share in report.strategies)
    return _TEMPLATE.substitute(
        run_id=escape(run.id),
        headline=escape(f"{run.state}, {run.way.replace('_', ' ')}, prompt version {run.prompt_version}"),
        succeeded=f"{report.succeeded:,}",
        left=f"{after / before:.0%}" if before else "–",
        spent=_dollars(report.spent_usd),
        expected=_dollars(report.expected_usd),
        sizes=_histogram(report.before, report.after),
        strategies=_bars(
            [(f"{one.strategy} ({one.sessions:,})", one.ratio, f"{one.ratio:.1%}") for one in report.strategies],
            "after",
            most=1.0,
        ),
        failures=_counts(report.failures),
        skipped=_counts(report.skipped),
        cost=_cost(report),
        slowest=_table(("Session", "Seconds"), [(one.session_id, f"{one.seconds or 0:.1f}") for one in report.slowest]),
        losses=_table(
            ("Session", "Rounds", "Tokens"),
            [(one.session_id, f"{one.dropped_rounds:,}", f"{one.dropped_tokens:,}") for one in report.losses],
        ),
    )


def _histogram(before: Distribution, after: Distribution) -> str:
    """Two bars per size, before and after, with the medians in words."""
    places = max(len(before.buckets), len(after.buckets))
    if not places:
        return NOTHING
    most = max((*before.buckets, *after.buckets))
    slot = WIDTH / places
    parts: list[str] = []
    for place in range(places):
        for shift, kind, buckets in ((0.1, "before", before.buckets), (0.5, "after", after.buckets)):
            count = buckets[place] if place < len(buckets) else 0
            height = CHART_HEIGHT * count / most
            x, y = slot * (place + shift), CHART_HEIGHT - height + 20
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{slot * 0.38:.1f}" height="{height:.1f}">'
                f"<title>{kind}: {count:,}</title></rect>"
            )
            if count:
                parts.append(f'<text x="{x:.1f}" y="{y - 4:.1f}">{count:,}</text>')
        parts.append(f'<text x="{slot * (place + 0.35):.1f}" y="{CHART_HEIGHT + 38}">{bucket_label(place)}</text>')
    words = (
        f"Before (grey): median {before.median:,}, nine of ten below {before.p90:,}, largest {before.largest:,}. "
        f"After (blue): median {after.median:,}, nine of ten below {after.p90:,}, largest {after.largest:,}."
    )
    return f"{_svg(CHART_HEIGHT + 48, parts, words)}<p>{words}</p>"


def _bars(rows: Sequence[tuple[str, float, str]], kind: str, *, most: float | None = None) -> str:
    """A horizontal bar per row: its name, its length, and the number in words."""
    if not rows:
        return NOTHING
    longest = most or max(value for _, value, _ in rows) or 1.0
    parts: list[str] = []
    for place, (name, value, words) in enumerate(rows):
        y, width = place * ROW_HEIGHT, BAR_WIDTH * min(1.0, value / longest)
        parts += [
            f'<text x="0" y="{y + 16}">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y + 4}" width="{width:.1f}" height="{ROW_HEIGHT - 10}"/>',
            f'<text x="{LABEL_WIDTH + width + 6:.1f}" y="{y + 16}">{escape(words)}</text>',
        ]
    return _svg(len(rows) * ROW_HEIGHT, parts, "; ".join(f"{name}: {words}" for name, _, words in rows))


def _counts(causes: Sequence[tuple[str, int]]) -> str:
    return _bars([(cause, float(count), f"{count:,}") for cause, count in causes], "bad")


def _cost(report: BulkReport) -> str:
    if report.expected_usd is None:
        return f"<p>{_dollars(report.spent_usd)} spent; what was expected is unknown: a model has no known price.</p>"
    rows = (("expected", report.expected_usd), ("spent", report.spent_usd))
    return _bars([(name, float(amount), _dollars(amount)) for name, amount in rows], "before")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return NOTHING
    head = "".join(f"<th{' class=n' if place else ''}>{name}</th>" for place, name in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if place else ''}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _svg(height: float, parts: Sequence[str], words: str) -> str:
    """A chart; `words` are what a screen reader says."""
    label = escape(words, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _dollars(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"${amount:,.4f}" if 0 < amount < 1 else f"${amount:,.2f}"
