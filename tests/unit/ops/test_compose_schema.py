"""`docker-compose.yml` keeps the published schema and has the shape of production; so has the Dockerfile."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from api.__main__ import DRAIN_SECONDS as API_DRAIN_SECONDS
from compaction.settings import Settings
from worker.drain import GOODBYE_SECONDS

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("migrate", "api", "worker")
PINNED = re.compile(r"[a-z./]+:v?\d+\.\d+(\.\d+)?(-[a-z-]+)?")  # a tag that moves with no minor release


def schema() -> Any:  # noqa: ANN401 - JSON
    """The specification's own schema, as check-jsonschema ships it."""
    package = importlib.util.find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_compose_keeps_the_published_schema() -> None:
    errors = [f"{list(error.instance_path)}: {error.message}" for error in jsonschema_rs.iter_errors(schema(), COMPOSE)]

    assert errors == []


def test_a_wrong_file_would_be_seen() -> None:
    wrong = {**COMPOSE, "services": {**SERVICES, "api": {**SERVICES["api"], "stop_grace": "30s"}}}

    assert not jsonschema_rs.is_valid(schema(), wrong)


def test_all_parts_of_production_are_there() -> None:
    assert set(SERVICES) == {"postgres", "redis", "migrate", "api", "worker", "prometheus", "grafana"}
    assert SERVICES["worker"]["deploy"]["replicas"] == 2
    for named in ("--appendonly yes", "--maxmemory-policy noeviction", "--requirepass"):
        assert named in SERVICES["redis"]["command"][2]
    for name in ("postgres", "redis", "api", "worker"):
        assert SERVICES[name]["healthcheck"]["test"]


def test_nothing_starts_before_the_migrations_have_ended() -> None:
    for name in ("api", "worker"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in OURS])
def test_images_of_others_are_pinned(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_change_nothing(name: str) -> None:
    service = SERVICES[name]
    assert (service["read_only"], service["tmpfs"], service["cap_drop"]) == (True, ["/tmp"], ["ALL"])  # noqa: S108 - in the container
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_loopback_is_published() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_a_stop_waits_as_long_as_a_drain_may_take() -> None:
    drain = Settings.model_fields["drain_seconds"].default
    assert seconds(SERVICES["worker"]) > drain + GOODBYE_SECONDS
    assert seconds(SERVICES["api"]) > API_DRAIN_SECONDS


def seconds(service: dict[str, Any]) -> int:
    """A service's grace period."""
    return int(str(service["stop_grace_period"]).removesuffix("s"))


def test_the_image_is_pinned_slim_and_of_two_stages() -> None:
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+", base)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]


def test_only_the_first_stage_installs_and_only_what_is_locked() -> None:
    first, last = DOCKERFILE.split("FROM ${PYTHON_IMAGE}")[1:]
    assert "--require-hashes" in first
    assert "--only-binary :all:" in first
    assert not re.search(r"apt-get|pip install|gcc|build-essential", last)
    assert "pip uninstall" in last


def test_the_image_runs_as_nobody_and_knows_how_it_is() -> None:
    last = DOCKERFILE.split("FROM ${PYTHON_IMAGE}")[-1]
    assert re.search(r"^USER 65534:65534$", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", last, re.MULTILINE)
    assert re.search(r"^STOPSIGNAL SIGTERM$", last, re.MULTILINE)


def test_what_the_image_copies_may_enter_it() -> None:
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = set(re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, re.MULTILINE))

    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
