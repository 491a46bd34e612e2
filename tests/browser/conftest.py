"""A browser for the tests that need one, and a service with something to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from ops.embedded import Valkey
from tests.browser.browsing import MISSING, PATIENCE_MS, context_of, executable, launched, sign_in
from tests.browser.scene import filled
from tests.integration.service import Json, Service


@pytest.fixture(scope="module")  # Playwright runs a loop of its own meanwhile: no test of another file may want one
def browser() -> Iterator[Browser]:
    """The system's Chromium; without one the test is skipped, unless it was promised."""
    program = executable()
    if program is None:
        pytest.skip(MISSING)
    expect.set_options(timeout=PATIENCE_MS)
    with launched(program) as started:
        yield started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API, one worker and the fake provider."""
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running


@pytest.fixture(scope="module")
def scene(service: Service) -> dict[str, Json]:
    """Jobs of every kind, by name."""
    return filled(service)


def is_trouble(said: ConsoleMessage) -> bool:
    """An error on the console, but for answers with an error's status: tests ask for those."""
    return said.type == "error" and not said.text.startswith("Failed to load resource")


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """An operator's page; a script that fails or is refused by the page's policy fails the test."""
    problems: list[str] = []
    with context_of(browser, str(service.http.base_url)) as context:
        opened = context.new_page()
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text) if is_trouble(said) else None)
        sign_in(opened)
        yield opened
    assert problems == []
