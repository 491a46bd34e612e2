"""`make clean` removes what the targets made, and nothing while the stack runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.clean import clean
from ops.stack.folder import StackFolder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (".venv/bin", ".local/postgres/data", ".cache", "api/__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("api/app.py", ".coverage.host.1"):
        (tmp_path / name).touch()
    return tmp_path


def test_only_the_sources_stay(checkout: Path) -> None:
    assert clean(checkout)
    assert sorted(path.relative_to(checkout).as_posix() for path in checkout.rglob("*")) == ["api", "api/app.py"]


def test_a_cluster_that_lies_elsewhere_goes_too(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "data"
    elsewhere.mkdir()
    data = checkout / ".local" / "postgres" / "data"
    data.rmdir()
    data.symlink_to(elsewhere)

    assert clean(checkout)
    assert not elsewhere.exists()


def test_nothing_goes_while_the_stack_runs(checkout: Path) -> None:
    with StackFolder(checkout / ".local"):
        assert not clean(checkout)

    assert (checkout / ".venv" / "bin").exists()
