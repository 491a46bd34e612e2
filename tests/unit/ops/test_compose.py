"""`docker-compose.yml`: what stands in `.env` reaches the containers. No package of ours reads YAML: lines will do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compaction.settings import Settings

OURS = ("api", "worker", "migrate")
FIXED = {  # where the other containers are, and where the API listens inside its own
    "api": {"COMPACTD_DATABASE_URL", "COMPACTD_REDIS_URL", "COMPACTD_HOST", "COMPACTD_PORT"},
    "worker": {"COMPACTD_DATABASE_URL", "COMPACTD_REDIS_URL", "COMPACTD_HOST", "COMPACTD_METRICS_PORT"},
    "migrate": {"COMPACTD_DATABASE_URL", "COMPACTD_REDIS_URL"},
}
ENV_FILE = (
    "\n  env_file:\n    - path: .env\n      required: false\n"  # a first look without any .env must say what to set
)


@pytest.fixture
def compose(repository: Path) -> str:
    return (repository / "docker-compose.yml").read_text(encoding="utf-8")


def anchor(compose: str) -> str:
    """The lines that our services share."""
    return compose[compose.index("x-compactd: &compactd\n") : compose.index("\nservices:\n")]


def service(compose: str, name: str) -> str:
    """The lines of one service."""
    found = re.search(rf"^  {name}:\n((?:    .*\n|\n)+)", compose, re.MULTILINE)
    assert found, name
    return found[1]


def environment(compose: str, name: str) -> dict[str, str]:
    """What a service's `environment` says, with what it takes from the shared lines."""
    shared = dict(re.findall(r"^    ([A-Z][A-Z_]*): (.*)$", anchor(compose), re.MULTILINE))
    return shared | dict(re.findall(r"^      ([A-Z][A-Z_]*): (.*)$", service(compose, name), re.MULTILINE))


@pytest.mark.parametrize("name", OURS)
def test_every_service_of_ours_reads_the_env_file(compose: str, name: str) -> None:
    assert ENV_FILE in anchor(compose)
    assert "    <<: *compactd\n" in service(compose, name)
    assert "env_file" not in service(compose, name)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("setting", sorted(str(field.alias) for field in Settings.model_fields.values()))
def test_no_setting_of_the_env_file_is_overruled(compose: str, name: str, setting: str) -> None:
    if setting in FIXED[name]:
        assert setting in environment(compose, name)
        return
    value = environment(compose, name).get(setting)
    assert value is None or value == f"${{{setting}:-}}"  # compose itself reads it out of .env or the shell


@pytest.mark.parametrize("name", OURS)
def test_a_service_that_adds_to_the_shared_environment_keeps_it(compose: str, name: str) -> None:
    own = service(compose, name)

    assert "environment:" not in own or "    environment:\n      <<: *environment\n" in own
