"""Postgres as the user nobody, for root where user namespaces are forbidden: what it needs is put where nobody can go.

A folder stays where it is if every folder above it lets others through; nothing above is changed. Otherwise a private
folder in the system's folder for lasting temporary files takes its place, and a link shows the way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

from ops.embedded.errors import LocalError
from ops.embedded.launch import NOBODY_ID

LASTING = Path("/var/tmp")  # noqa: S108 - ownership is checked below; unlike the other one it survives a restart
OTHERS_PASS = stat.S_IXOTH


def is_reachable(folder: Path) -> bool:
    """Whether every folder above this one lets others through."""
    return all(parent.stat().st_mode & OTHERS_PASS for parent in folder.resolve().parents)


def make_folder(folder: Path) -> Path:
    """Makes `folder` for nobody alone and returns where it really is; elsewhere, a link stands in its place."""
    if is_reachable(folder):
        folder.mkdir(mode=0o700)
        _give(folder)
        return folder
    real = _lasting_folder(folder) / folder.name
    shutil.rmtree(real, ignore_errors=True)
    real.mkdir(mode=0o700)
    _give(real)
    folder.symlink_to(real)
    return real


def remove_folder(folder: Path) -> None:
    """Removes a folder, and the one that it links to."""
    if folder.is_symlink():
        real = folder.readlink()
        shutil.rmtree(real, ignore_errors=True)
        with contextlib.suppress(OSError):  # something else of ours may lie there
            real.parent.rmdir()
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def reachable_programs(programs: Path) -> Path:
    """The `bin` folder of a Postgres that nobody may run: this one, or a copy of its whole tree (41 MB, kept)."""
    tree = programs.parent
    if is_reachable(programs / "postgres"):
        return programs
    copy = _lasting_folder(tree) / f"{tree.name}-{tree.stat().st_mtime_ns}"
    if not copy.exists():
        half = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copytree(tree, half, symlinks=True)
        half.rename(copy)
    return copy / programs.name


def _give(path: Path) -> None:
    os.chown(path, NOBODY_ID, NOBODY_ID)


def _lasting_folder(wanted: Path) -> Path:
    """A folder of root's for what belongs to `wanted`; refused if somebody else put something in its place."""
    folder = LASTING / f"compactd-{hashlib.sha256(os.fsencode(wanted.resolve())).hexdigest()[:16]}"
    folder.mkdir(mode=0o711, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LocalError(f"{folder} belongs to somebody else. Remove it, or start the stack as an ordinary user.")
    folder.chmod(0o711)  # whatever the umask says
    return folder
