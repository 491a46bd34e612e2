"""The Kubernetes manifests keep the published schemas, our own numbers, and the rules of a locked-down pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it ships no types
import pytest
import yaml

from api.__main__ import DRAIN_SECONDS as API_DRAIN_SECONDS
from compaction import __version__
from compaction.settings import Settings
from ops.metric_names import named_in, served
from worker.drain import GOODBYE_SECONDS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "ops" / "k8s"
VERSION = "1.37"  # the newest whose schemas the package ships
OLDEST = "1.32"  # and the oldest that our files must still fit
Manifest = dict[str, Any]


def manifests(*folders: str) -> Iterator[Manifest]:
    """Every document of these folders."""
    for folder in folders:
        for path in sorted((FOLDER / folder).glob("*.yml")):
            yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def named(kind: str, name: str) -> Manifest:
    """The one document of that kind and name."""
    (found,) = (one for one in manifests("base") if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def pods() -> dict[str, Manifest]:
    """The pods' templates by the names of what makes them."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in manifests("base")
        if one["kind"] in {"Deployment", "Job"}
    }


PODS = pods()


@pytest.mark.parametrize("version", [OLDEST, VERSION])
@pytest.mark.parametrize(
    "manifest", list(manifests("base", "hpa")), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_each_manifest_keeps_the_published_schema(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_wrong_manifest_would_be_seen() -> None:
    wrong = named("Deployment", "compactd-api")
    wrong["spec"]["template"]["spec"]["terminationGraceSeconds"] = 5
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_nobody_and_can_change_nothing(name: str) -> None:
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "Dockerfile").read_text()
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["image"] == f"compactd:{__version__}"


def test_the_commands_are_those_of_compose() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name, pod in PODS.items():
        assert pod["spec"]["containers"][0]["command"] == services[name.removeprefix("compactd-")]["command"]


def test_the_settings_exist_and_a_pod_reads_them() -> None:
    known = {str(field.alias) for field in Settings.model_fields.values()}
    assert set(named("ConfigMap", "compactd")["data"]) <= known
    for pod in PODS.values():
        assert pod["spec"]["containers"][0]["envFrom"] == [
            {"configMapRef": {"name": "compactd"}},
            {"secretRef": {"name": "compactd"}},
        ]


def test_a_worker_has_time_to_drain_and_an_api_to_answer() -> None:
    drain = float(named("ConfigMap", "compactd")["data"]["COMPACTD_DRAIN_SECONDS"])
    grace = {name: pod["spec"].get("terminationGracePeriodSeconds") for name, pod in PODS.items()}
    assert grace["compactd-worker"] > drain + GOODBYE_SECONDS
    api = PODS["compactd-api"]["spec"]["containers"][0]
    pause = api["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert grace["compactd-api"] > pause + API_DRAIN_SECONDS


def test_probes_ask_where_something_answers() -> None:
    ports = {
        "compactd-api": named("ConfigMap", "compactd")["data"]["COMPACTD_PORT"],
        "compactd-worker": named("ConfigMap", "compactd")["data"]["COMPACTD_METRICS_PORT"],
    }
    for name, port in ports.items():
        container = PODS[name]["spec"]["containers"][0]
        (listens,) = container["ports"]
        assert str(listens["containerPort"]) == port == PODS[name]["metadata"]["annotations"]["prometheus.io/port"]
        assert {
            container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        } == {listens["name"]}
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a selector's labels are among these."""
    wanted: Mapping[str, str] = selector["matchLabels"]
    return wanted.items() <= labels.items()


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
def test_budgets_and_policies_find_their_pods(kind: str) -> None:
    for one in (found for found in manifests("base") if found["kind"] == kind):
        selector = one["spec"].get("selector") or one["spec"]["podSelector"]
        assert any(matches(selector, pod["metadata"]["labels"]) for pod in PODS.values()), one["metadata"]["name"]


def test_whoever_scales_the_workers_asks_for_metrics_that_exist() -> None:
    for one in manifests("hpa", "keda"):
        names = named_in(yaml.safe_dump(one))
        assert names == {"compaction_oldest_queued_age_seconds", "compaction_jobs"}
        assert names <= served()
        assert one["spec"]["scaleTargetRef"]["name"] == "compactd-worker"
    assert "replicas" not in named("Deployment", "compactd-worker")["spec"]  # an apply would undo the scaling
