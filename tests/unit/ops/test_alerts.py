"""Alerts, runbooks and the Grafana dashboard fit each other and the names that the processes serve."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compaction import errors
from ops.metric_names import named_in, served

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "ops" / "prometheus" / "alerts.yml"
BOARD = ROOT / "ops" / "grafana" / "dashboards" / "compactd.json"
RUNBOOKS = ROOT / "ops" / "runbooks"
PAGE = ROOT / "docs" / "metrics.md"


def promtool(*arguments: str) -> None:
    """Runs promtool; without it the test is skipped, unless CI has promised that it is there."""
    program = shutil.which("promtool")
    if program is None:
        if os.environ.get("COMPACTD_HAS_PROMTOOL"):
            pytest.fail("promtool was to be installed and is not")
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    ran = subprocess.run([program, *arguments], cwd=ALERTS.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_prometheus_accepts_its_configuration_and_the_rules() -> None:
    promtool("check", "config", "prometheus.yml")


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    promtool("test", "rules", "alerts_test.yml")


def test_each_alert_is_played() -> None:
    played = set(re.findall(r"alertname: (\w+)", (ALERTS.parent / "alerts_test.yml").read_text()))
    assert alerts() == played


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"error-codes", "README"}
    assert pages == alerts()
    for name in alerts():
        assert f"runbook: ops/runbooks/{name}.md" in ALERTS.read_text()


def test_links_between_runbooks_lead_somewhere() -> None:
    for path in RUNBOOKS.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / link).exists(), (path.name, link)


def test_each_error_code_of_a_job_says_what_to_do() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", (RUNBOOKS / "error-codes.md").read_text(), re.MULTILINE))
    assert told == {kind.code for kind in job_errors(errors.JobError)}


def test_alerts_and_dashboard_use_only_metrics_that_exist() -> None:
    assert named_in(ALERTS.read_text()) <= served()
    assert named_in(expressions()) <= served()


def test_each_metric_is_on_the_page_and_on_the_dashboard() -> None:
    assert named_in(PAGE.read_text()) == served()
    assert named_in(expressions()) == served()


def test_panels_have_places_of_their_own() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in json.loads(BOARD.read_text())["panels"]]
    assert len(places) == len(set(places))


def alerts() -> set[str]:
    return set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))


def expressions() -> str:
    panels = json.loads(BOARD.read_text())["panels"]
    return "\n".join(target["expr"] for panel in panels for target in panel["targets"])


def job_errors(kind: type[errors.JobError]) -> set[type[errors.JobError]]:
    below = {found for child in kind.__subclasses__() for found in job_errors(child)}
    return below | {kind} if "code" in vars(kind) else below
