"""`make screenshots`: pictures of the main pages for docs/, taken of a real service with a scripted model."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import psycopg
from playwright.sync_api import Browser

from compaction.store import migrate
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import create_database
from tests.browser.browsing import MISSING, context_of, executable, launched, sign_in
from tests.browser.scene import filled
from tests.integration.service import Json, Service

A_DAY = Path(__file__).with_name("a_day.sql")
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"


def pages(named: dict[str, Json]) -> dict[str, str]:
    """The pictures and the addresses they are taken of."""
    return {
        "overview": "/dashboard",
        "failures": "/dashboard/failures",
        "jobs": "/dashboard/jobs?status=failed",
        "job": f"/dashboard/jobs/{named['cut']['id']}",
        "job-failed": f"/dashboard/jobs/{named['refused']['id']}",
        "session": "/dashboard/session?name=nightly",
        "breakers": "/dashboard/breakers",
        "workers": "/dashboard/workers",
        "bulk": "/dashboard/jobs/all?action=retry&status=failed&code=no_summary",
    }


def shoot(browser: Browser, url: str, addresses: dict[str, str], folder: Path, **look: bool) -> None:
    """One picture of each page."""
    mark = "".join(f"-{name}" for name, is_so in look.items() if is_so)
    with context_of(browser, url, **look) as context:
        page = context.new_page()
        sign_in(page)
        for name, address in addresses.items():
            page.goto(address)
            page.wait_for_load_state("networkidle")
            page.screenshot(
                path=folder / f"{name}{mark}.png", full_page=folder != FOLDER
            )  # of docs: what one sees first


def shoot_deed(browser: Browser, url: str, folder: Path) -> None:
    """What a bulk deed leaves: its result, and the audit log."""
    with context_of(browser, url) as context:
        page = context.new_page()
        sign_in(page)
        page.goto("/dashboard/jobs/all?action=retry&status=failed&code=no_summary")
        page.get_by_label("Yes, retry").check()
        page.get_by_role("button", name="Retry").click()
        page.get_by_role("status").wait_for()
        page.goto("/dashboard/audit")
        page.screenshot(path=folder / "audit.png", clip={"x": 0, "y": 0, "width": 1200, "height": 420})


def main(folder: Path) -> int:
    """Writes the pictures; 1 where there is no browser."""
    program = executable()
    if program is None:
        print(f"There is {MISSING}.", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="compactd-pictures-") as place:
        postgres = Postgres(Path(place) / "postgres", durable=False)
        try:
            postgres.start()
            url = create_database(postgres, "pictures")
            migrate.upgrade(url)
            with Valkey(Path(place) / "valkey") as valkey, Service(Path(place), url, valkey.url()) as service:
                addresses = pages(filled(service))
                with psycopg.connect(postgres.url("pictures"), autocommit=True) as connection:
                    connection.execute(A_DAY.read_bytes())
                with launched(program) as browser:
                    at = str(service.http.base_url)
                    shoot(browser, at, addresses, folder)
                    shoot_deed(browser, at, folder)
                    for look in ({"dark": True}, {"phone": True}):
                        few = {name: addresses[name] for name in ("overview", "job")}
                        shoot(browser, at, few if folder == FOLDER else addresses, folder, **look)
        finally:
            postgres.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER))
