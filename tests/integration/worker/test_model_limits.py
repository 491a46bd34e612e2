"""Whose word about a model's limits counts, and what happens to wrong ones, through the running service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ops.embedded import Valkey
from tests.integration.service import Service, history

UNKNOWN = "a-gateways-own-model"  # the table does not know it: 200,000 by default


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API and worker of an operator who mistyped both overrides."""
    wrong = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "lots", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "101"}
    with Service(tmp_path_factory.mktemp("limits"), module_database_url, valkey.url(), **wrong) as running:
        yield running


def test_the_worker_says_which_overrides_it_ignores(service: Service) -> None:
    told = [line for line in service.log("worker").splitlines() if "settings.ignored" in line]
    assert len(told) == 2
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW must be a whole number" in told[0]
    assert "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE must be a number" in told[1]
    assert '"warning"' in told[0]
    assert "lots" not in told[0]


def test_the_models_api_decides_when_a_session_is_full(service: Service) -> None:
    """About 8,000 tokens are little for 200,000 and too much for the 12,000 that the provider tells of its model."""
    service.play({"windows": {UNKNOWN: 12_000}})
    service.put_session("told", history(30), model=UNKNOWN)
    assert service.compact("told", trigger="auto")["was_compacted"] is True
    service.put_session("table", history(30))
    assert service.compact("table", trigger="auto")["reason"] == "below_threshold"


def test_a_sessions_own_wrong_settings_are_told_on_the_jobs_timeline(service: Service) -> None:
    service.play()
    service.put_session("odd", history(10), settings={"autocompact_percent": "s3cret", "compactable_tools": 7})
    job = service.compact("odd")
    events = service.http.get(f"/v1/compactions/{job['id']}/events").json()["data"]
    (told,) = [event["data"]["problems"] for event in events if event["type"] == "settings_ignored"]
    assert [line.split()[0] for line in told] == ["autocompact_percent", "compactable_tools"]
    assert "s3cret" not in str(events)
