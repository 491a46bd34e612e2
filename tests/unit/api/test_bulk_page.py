from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser

from api.bulk_page import bulk_page
from compaction.core.bulk_report import Gathering, Outcome
from compaction.store.bulk_runs import RunRow

AT = datetime(2026, 11, 30, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>"
RUN = RunRow(
    id="01a22e26-6a10-7b1c-9c40-2f5e8d1f7a01",
    tenant_id=1,
    state="ended",
    resume_to=None,
    dry_run=False,
    selection={},
    way="live",
    way_note=None,
    model=None,
    strategy=None,
    instructions=None,
    force=False,
    sample=None,
    max_usd=None,
    max_tokens=None,
    prompt_version=2,
    after_session_id=0,
    through_session_id=0,
    end_reason="done",
    created_at=AT,
    planned_at=AT,
    started_at=AT,
    ended_at=AT,
)


class Tags(HTMLParser):
    """Remembers the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_page_has_charts_and_nothing_that_runs_or_is_loaded() -> None:
    gathering = Gathering()
    gathering.add(
        Outcome(
            session_id=HOSTILE,
            state="succeeded",
            strategy="fresh",
            before=90_000,
            after=4_000,
            seconds=2.0,
            dropped_rounds=1,
            dropped_tokens=500,
            expected_usd=Decimal("0.1"),
        )
    )
    gathering.add(Outcome(session_id="f", state="failed", cause="not_effective"))
    page = bulk_page(RUN, gathering.report())
    tags = Tags()
    tags.feed(page)
    assert tags.seen.count("svg") >= 3
    assert not {"script", "link", "img", "iframe", "object"} & set(tags.seen)
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_run_that_did_nothing_has_a_page_too() -> None:
    assert "None." in bulk_page(RUN, Gathering().report())
