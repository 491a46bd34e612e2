"""Every page in light and dark, on a desk and on a phone: nothing sticks out, and everybody can read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.browsing import context_of, sign_in
from tests.browser.scene import HOSTILE
from tests.integration.service import Json, Service

pytestmark = pytest.mark.browser

AXE = Path(__file__).with_name("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (rules) => {
  const found = await axe.run(document, {runOnly: rules});
  const places = (one) => one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(" | ");
  return found.violations.map((one) => `${one.id}: ${places(one)}`);
}"""
LOOKS = [("desk", "light"), ("desk", "dark"), ("phone", "light"), ("phone", "dark")]


def addresses(scene: dict[str, Json]) -> dict[str, str]:
    return {
        "overview": "/dashboard",
        "failures": "/dashboard/failures",
        "jobs": "/dashboard/jobs",
        "no jobs": "/dashboard/jobs?session=nobody",
        "a cut job": f"/dashboard/jobs/{scene['cut']['id']}",
        "a failed job": f"/dashboard/jobs/{scene['failed']['id']}",
        "a skipped job": f"/dashboard/jobs/{scene['skipped']['id']}",
        "sessions": "/dashboard/sessions",
        "a session": "/dashboard/session?name=nightly",
        "a full session": "/dashboard/session?name=hostile&view=full",
        "breakers": "/dashboard/breakers",
        "workers": "/dashboard/workers",
        "a dry run": "/dashboard/jobs/all?action=retry&status=failed",
        "audit": "/dashboard/audit",
        "codes": "/dashboard/help",
        "a code": "/dashboard/help/timeout",
        "a runbook": "/dashboard/help/JobDead",
        "nowhere": "/dashboard/nowhere",
    }


@pytest.mark.timeout(300)  # twenty pages and axe on each; the first test also fills the service
@pytest.mark.parametrize(("device", "scheme"), LOOKS)
def test_nothing_sticks_out_and_axe_finds_nothing(
    browser: Browser, service: Service, scene: dict[str, Json], device: str, scheme: str
) -> None:
    wrong: dict[str, list[str]] = {}
    with context_of(browser, str(service.http.base_url), phone=device == "phone", dark=scheme == "dark") as context:
        page = context.new_page()
        page.goto("/dashboard/sign-in")
        wrong["sign-in"] = problems(page)
        sign_in(page)
        for name, address in addresses(scene).items():
            page.goto(address)
            for folded in page.locator("details").all():
                folded.evaluate("one => one.open = true")
            wrong[name] = problems(page)
    assert {name: found for name, found in wrong.items() if found} == {}


def problems(page: Page) -> list[str]:
    """What axe says of the page, and by how much it is wider than the window."""
    page.evaluate(AXE)  # not as an element: the page's policy allows no script of others
    found: list[str] = page.evaluate(RUN_AXE, RULES)
    over: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found + ([f"sticks out by {over} px"] if over > 0 else [])


@pytest.fixture
def plain(browser: Browser, service: Service) -> Iterator[Page]:
    """A visitor without JavaScript."""
    with context_of(browser, str(service.http.base_url), script=False) as context:
        page = context.new_page()
        sign_in(page)
        yield page


def test_everything_can_be_read_and_done_without_javascript(plain: Page, scene: dict[str, Json]) -> None:
    for name, address in addresses(scene).items():
        answer = plain.goto(address)
        assert answer is not None
        assert answer.status == (404 if name == "nowhere" else 200), name
        expect(plain.locator("h1")).to_be_visible()
    plain.goto("/dashboard")
    plain.get_by_text("The same as a table").click()
    expect(plain.locator("#series tbody tr")).to_have_count(48)
    plain.goto("/dashboard/jobs")
    plain.get_by_label("State").select_option("failed")
    plain.get_by_role("button", name="Show").click()
    expect(plain.locator("tbody .tag.failed").first).to_be_visible()
    expect(plain.locator("tbody .tag.succeeded")).to_have_count(0)


def test_the_keyboard_reaches_the_content_first_and_then_everything(page: Page) -> None:
    page.goto("/dashboard/failures")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Made in the last")).to_be_focused()
    outlines = page.evaluate(
        "getComputedStyle(document.activeElement).boxShadow + getComputedStyle(document.activeElement).outlineStyle"
    )
    assert outlines != "nonenone"


def test_a_job_page_shows_its_timeline_its_cuts_its_calls_and_its_summary(page: Page, scene: dict[str, Json]) -> None:
    page.goto(f"/dashboard/jobs/{scene['cut']['id']}")
    lines = page.locator("ol.timeline li strong").all_inner_texts()
    assert lines == [
        "Accepted",
        "Attempt 1: claimed",
        "Kind of request chosen",
        "Prompt too long: oldest rounds cut",
        "Model answered",
        "Compacted",
        "Attempt 1: committed",
        "Ended: succeeded",
    ]
    expect(page.locator("ol.timeline")).to_contain_text("gap 13000")
    expect(page.locator("figure.picture svg rect.part")).to_have_count(4)  # dropped, replaced; summary, attachments
    expect(page.locator("table", has_text="Stopped by").locator("tbody tr")).to_have_count(1)
    expect(page.locator("pre.summary")).to_contain_text("DECISION-7 stays.")
    expect(page.locator("main")).to_contain_text("1 refusal as too long")


def test_a_failed_jobs_page_says_why_and_what_to_do(page: Page, scene: dict[str, Json]) -> None:
    page.goto(f"/dashboard/jobs/{scene['refused']['id']}")
    why = page.get_by_role("region", name="Why")
    expect(why).to_contain_text("The model refused to summarise this session.")
    expect(why).to_contain_text("What to do: COMPACTD_FALLBACK_MODEL")
    why.get_by_role("link", name="Runbook").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("refusal")


def test_what_a_transcript_says_is_never_markup(page: Page, scene: dict[str, Json]) -> None:
    for address in (f"/dashboard/jobs/{scene['hostile']['id']}", "/dashboard/session?name=hostile&view=full"):
        page.goto(address)
        expect(page.locator("pre", has_text="<script>").first).to_be_visible()
        assert "owned" not in page.title()
        assert page.locator("main script, main img").count() == 0
        assert "\u202e" in HOSTILE
        assert "\u202e" not in page.locator("main").inner_text()


def test_a_page_does_not_renew_itself_under_somebodys_hands(page: Page) -> None:
    """A table that was unfolded stays so over the next renewal, and renewals go on when it is folded again."""
    page.clock.install()
    page.goto("/dashboard")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if sent.headers.get("hx-request") else None)
    table = page.locator("details", has_text="The same as a table")
    table.evaluate("one => one.open = true")
    page.clock.run_for(20_000)
    assert asked == []
    assert table.evaluate("one => one.open") is True
    table.evaluate("one => one.open = false")
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        page.clock.run_for(6_000)


def test_the_overview_renews_itself_and_draws_its_chart(page: Page, service: Service) -> None:
    page.goto("/dashboard")
    expect(page.locator("figure.chart canvas")).to_be_visible()
    before = page.locator("time, #series").count()
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        pass
    expect(page.locator("figure.chart canvas")).to_be_visible()
    assert page.locator("time, #series").count() == before
    assert page.locator("#live").count() == 1
