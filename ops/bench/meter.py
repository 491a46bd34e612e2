"""What processes use, from /proc: CPU seconds and resident memory of a process with its children. Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
FORGET_PEAK = b"5"  # proc(5), clear_refs: the peak of resident memory starts anew
_USER, _SYSTEM, _CHILD_USER, _CHILD_SYSTEM = 11, 12, 13, 14  # fields of /proc/PID/stat behind the name, from 0
_PARENT = 1
_BUSY_FIELDS = (0, 1, 2, 5, 6)  # of the cpu line of /proc/stat: user, nice, system, irq, softirq


@dataclass(frozen=True, slots=True)
class Meter:
    """The process `pid` and everything it started."""

    pid: int

    def cpu_seconds(self) -> float:
        """User and system time so far, of ended children too."""
        return sum(_cpu_seconds(pid) for pid in self._pids())

    def rss_bytes(self) -> int:
        """Resident memory now. Pages that two processes share count twice."""
        return sum(_status_bytes(pid, "VmRSS") for pid in self._pids())

    def peak_bytes(self) -> int:
        """The most resident memory since `forget_peak`, process by process."""
        return sum(_status_bytes(pid, "VmHWM") for pid in self._pids())

    def forget_peak(self) -> None:
        """The peak counts from now on."""
        for pid in self._pids():
            (PROC / str(pid) / "clear_refs").write_bytes(FORGET_PEAK)

    def _pids(self) -> list[int]:
        parents = dict(_parents())
        found = [self.pid]
        for pid in found:  # grows while it is read
            found += [child for child, parent in parents.items() if parent == pid]
        return found


def machine_cpu_seconds() -> float:
    """CPU time that all processes of the machine have used since it started."""
    fields = (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return sum(int(fields[place]) for place in _BUSY_FIELDS) / TICKS_PER_SECOND


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    spent = (_USER, _SYSTEM, _CHILD_USER, _CHILD_SYSTEM)
    return sum(int(fields[place]) for place in spent) / TICKS_PER_SECOND if fields else 0.0


def _status_bytes(pid: int, name: str) -> int:
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _parents() -> Iterator[tuple[int, int]]:
    for folder in PROC.iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            yield int(folder.name), int(fields[_PARENT])


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold spaces; none when the process has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
