"""What operators come for: a job failed; they find why, mend the cause, and repair all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.scene import WINDOW, fail, open_breaker
from tests.integration.service import Service, history

pytestmark = pytest.mark.browser


def test_failed_jobs_are_found_by_their_cause_and_retried_in_bulk(page: Page, service: Service) -> None:
    for number in range(3):
        service.put_session(f"invoice-{number}", history(12))
        fail(service, f"invoice-{number}")
    service.play()  # the cause is mended: the model summarises again

    page.goto("/dashboard")
    page.get_by_role("link", name="Failures").click()
    cause = page.locator("article.cause", has=page.get_by_role("link", name="no_summary", exact=True))
    expect(cause).to_contain_text("3 open of 3")
    expect(cause).to_contain_text("What to do: Retry once.")
    cause.get_by_role("link", name="Retry the open ones").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 3 jobs?")
    expect(page.locator("table.rows tbody tr")).to_have_count(3)
    page.get_by_label("Yes, retry all 3").check()
    page.get_by_role("button", name="Retry 3 jobs").click()
    expect(page.get_by_role("status")).to_have_text("3 jobs retried")

    for number in range(3):
        jobs = service.http.get("/v1/compactions", params={"session_id": f"invoice-{number}"}).json()["data"]
        assert len(jobs) == 2
        assert service.wait(jobs[0]["id"])["status"] == "succeeded"
    page.goto("/dashboard/failures")
    expect(cause).to_contain_text("0 open of 3")
    expect(cause.get_by_role("link", name="Retry the open ones")).to_have_count(0)
    page.goto("/dashboard/audit")
    entry = page.locator("tbody tr", has_text="jobs.retry")
    expect(entry).to_contain_text("status=failed code=no_summary")
    expect(entry.locator("td[data-label=Changed]")).to_have_text("3")


def test_nothing_happens_in_bulk_without_the_confirmation(page: Page, service: Service) -> None:
    """The browser asks for the tick, and so does the server."""
    service.put_session("unconfirmed", history(12))
    fail(service, "unconfirmed")
    service.play()
    page.goto("/dashboard/jobs/all?action=retry&session=unconfirmed")
    page.get_by_role("button", name="Retry 1 job").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 1 job?")
    page.locator("input[name=confirm]").evaluate("box => box.required = false")
    page.get_by_role("button", name="Retry 1 job").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
    assert len(service.http.get("/v1/compactions", params={"session_id": "unconfirmed"}).json()["data"]) == 1


def test_an_open_breaker_is_reset_by_one_click_and_the_session_compacts_again(page: Page, service: Service) -> None:
    service.put_session("stuck", history(20), settings=WINDOW)
    open_breaker(service, "stuck")
    service.play()
    assert service.compact("stuck", trigger="auto")["reason"] == "circuit_open"

    page.goto("/dashboard")
    page.locator("a.tile", has_text="Open breakers").click()
    row = page.locator("tbody tr", has_text="stuck")
    expect(row).to_contain_text("no_summary")
    row.get_by_role("button", name="Reset the breaker of stuck").click()
    expect(page.get_by_role("status")).to_contain_text("Reset")
    expect(page.locator("main")).to_contain_text("No breaker is open")

    assert service.compact("stuck", trigger="auto")["was_compacted"] is True
    page.goto("/dashboard/session?name=stuck")
    expect(page.locator("ol.timeline")).to_contain_text("reset by")


def test_a_waiting_job_is_cancelled_from_its_page(page: Page, service: Service) -> None:
    service.put_session("planned", history(3))
    job = service.enqueue("planned", not_before=(datetime.now(UTC) + timedelta(days=1)).isoformat())
    page.goto(f"/dashboard/jobs/{job['id']}")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_role("status")).to_contain_text("Cancelled")
    assert service.job(job["id"])["status"] == "cancelled"
