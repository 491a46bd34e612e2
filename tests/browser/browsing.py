"""The system's Chromium, driven by Playwright. No browser is ever downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.integration.service import KEY

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
)  # as root, in a small container
PATIENCE_MS = 30_000  # a busy machine; nothing here is about speed
DESK = {"width": 1200, "height": 760}
PHONE = {"width": 375, "height": 812}
REQUIRED = "COMPACTD_HAS_BROWSER"  # set where a browser was installed: then no test may be skipped for want of one
MISSING = f"no Chromium on PATH ({', '.join(NAMES)}): apt-get install chromium"


def executable() -> str | None:
    """The browser's program, None where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get(REQUIRED):
        raise AssertionError(f"{REQUIRED} is set, but there is {MISSING}")
    return found


@contextmanager
def launched(program: str) -> Iterator[Browser]:
    """A headless browser of this block, without a sandbox: it meets our own pages alone."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def context_of(
    browser: Browser, url: str, *, phone: bool = False, dark: bool = False, script: bool = True
) -> BrowserContext:
    """A fresh visitor without cookies."""
    context = browser.new_context(
        base_url=url,
        viewport=PHONE if phone else DESK,  # type: ignore[arg-type]  # a mapping of two numbers
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        java_script_enabled=script,
    )
    context.set_default_timeout(PATIENCE_MS)
    return context


def sign_in(page: Page, key: str = KEY, *, look: bool = False) -> None:
    """Through the form, as people do."""
    page.goto("/dashboard/sign-in")
    page.get_by_label("API key").fill(key)
    if look:
        page.get_by_label("Look only").check()
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/dashboard")
