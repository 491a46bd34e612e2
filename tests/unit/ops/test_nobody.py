"""What nobody needs is put where nobody can go, and only root's own folders are trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ops.embedded import nobody
from ops.embedded.errors import LocalError

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def lasting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for the system's folder of lasting temporary files."""
    folder = tmp_path / "lasting"
    folder.mkdir()
    monkeypatch.setattr(nobody, "LASTING", folder)
    return folder


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder under one that lets nobody through."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    return folder / "data"


def test_a_folder_is_reachable_when_every_folder_above_it_lets_others_through(closed: Path) -> None:
    assert nobody.is_reachable(Path("/data"))
    assert not nobody.is_reachable(closed)


@root_only
def test_an_unreachable_folder_is_made_elsewhere_and_linked(closed: Path, lasting: Path) -> None:
    real = nobody.make_folder(closed)

    assert closed.is_symlink()
    assert real == closed.resolve()
    assert real.is_relative_to(lasting)
    assert (real.stat().st_uid, real.stat().st_mode & 0o777) == (65534, 0o700)
    assert real.parent.stat().st_uid == 0


@root_only
def test_removing_a_linked_folder_leaves_nothing_elsewhere(closed: Path, lasting: Path) -> None:
    nobody.make_folder(closed)

    nobody.remove_folder(closed)

    assert not closed.is_symlink()
    assert list(lasting.iterdir()) == []


def test_a_plain_folder_is_removed_and_a_missing_one_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)

    nobody.remove_folder(tmp_path / "folder")
    nobody.remove_folder(tmp_path / "folder")

    assert not (tmp_path / "folder").exists()


@root_only
def test_a_link_that_somebody_put_in_the_way_is_not_followed(closed: Path, lasting: Path, tmp_path: Path) -> None:
    nobody.make_folder(closed)
    place = closed.resolve().parent
    nobody.remove_folder(closed)
    (tmp_path / "trap").mkdir()
    place.symlink_to(tmp_path / "trap")

    with pytest.raises(LocalError, match="belongs to somebody else"):
        nobody.make_folder(closed)


@root_only
def test_programs_that_nobody_cannot_reach_are_copied_once(closed: Path, lasting: Path) -> None:
    programs = closed / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").touch(mode=0o755)

    copied = nobody.reachable_programs(programs)

    assert copied.is_relative_to(lasting)
    assert (copied / "postgres").exists()
    (copied / "kept").touch()
    assert nobody.reachable_programs(programs) == copied
    assert (copied / "kept").exists()
