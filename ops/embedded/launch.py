"""Becomes another program whose life is bound to its parent's: launch.py PARENT SIGNAL IDENTITY PROGRAM ARG...

PARENT is the pid of the starting process, SIGNAL what the program gets when that process dies (even by kill -9),
IDENTITY one of ops.embedded.identity.Identity. It is a script, not a preexec function, because after the fork of a
process with threads nothing but exec is safe. The order matters: a change of user clears the parent-death signal.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000  # linux/sched.h
PR_SET_PDEATHSIG = 1  # linux/prctl.h
NOBODY_ID = 65534  # the overflow uid and gid of every Linux; other systems never come here


def enter_namespace() -> None:
    """Makes root look like nobody to this process alone: one entry, no other user, no right outside."""
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    Path("/proc/self/setgroups").write_text("deny")  # the kernel asks for it before a gid_map
    Path("/proc/self/uid_map").write_text(f"{NOBODY_ID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY_ID} {gid} 1")


def become_nobody() -> None:
    """Gives up root for good."""
    os.setgroups([])
    os.setgid(NOBODY_ID)
    os.setuid(NOBODY_ID)


def follow_parent(parent: int, signal_number: int) -> None:
    """Has the kernel send the signal when the parent dies; ends at once if it is dead already. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)


def main(arguments: list[str]) -> None:
    """Changes identity, binds to the parent, becomes the program."""
    parent, signal_number, identity, *command = arguments
    if identity == "namespace":
        enter_namespace()
    elif identity == "nobody":
        become_nobody()
    follow_parent(int(parent), int(signal_number))
    os.execvp(command[0], command)  # noqa: S606 - a list of arguments, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
