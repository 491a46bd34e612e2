"""The local stack's settings come from the environment; wrong ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.embedded.errors import LocalError
from ops.stack.settings import StackSettings


def test_an_empty_environment_gives_the_defaults_of_the_design(repository: Path) -> None:
    settings = StackSettings.read({})

    assert settings.folder == repository / ".local"
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8080, 1)
    assert settings.environ["COMPACTD_WORKER_CONCURRENCY"] == "300"


def test_empty_values_count_as_unset() -> None:
    assert StackSettings.read({"COMPACTD_PORT": "", "COMPACTD_WORKERS": ""}) == StackSettings.read({})


def test_a_demo_takes_any_port_unless_one_is_named() -> None:
    assert StackSettings.read({}, default_port=0).port == 0
    assert StackSettings.read({"COMPACTD_PORT": "9000"}, default_port=0).port == 9000


def test_the_folder_may_be_relative_or_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    assert StackSettings.read({"COMPACTD_LOCAL_DIR": "here"}).folder == tmp_path / "here"
    assert StackSettings.read({"COMPACTD_LOCAL_DIR": "~/there"}).folder == tmp_path / "me" / "there"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPACTD_PORT", "-1"),
        ("COMPACTD_PORT", "65536"),
        ("COMPACTD_PORT", "http"),
        ("COMPACTD_PORT", "８０"),  # noqa: RUF001 - digits of another script are no port
        ("COMPACTD_WORKERS", "0"),
        ("COMPACTD_WORKERS", "65"),
        ("COMPACTD_DRAIN_SECONDS", "soon"),
        ("COMPACTD_DRAIN_SECONDS", "nan"),
        ("COMPACTD_DRAIN_SECONDS", "-1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(name: str, value: str) -> None:
    with pytest.raises(LocalError, match=name):
        StackSettings.read({name: value})


def test_what_is_set_passes_through_and_wins_over_our_defaults() -> None:
    environ = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "COMPACTD_WORKER_CONCURRENCY": "7"}

    inherited = StackSettings.read(environ).environ

    assert inherited["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert inherited["COMPACTD_WORKER_CONCURRENCY"] == "7"


def test_loopback_never_goes_through_a_proxy() -> None:
    inherited = StackSettings.read({"NO_PROXY": "a.example,127.0.0.1"}).environ

    assert inherited["NO_PROXY"] == "a.example,127.0.0.1,localhost"
    assert inherited["no_proxy"] == "127.0.0.1,localhost"
