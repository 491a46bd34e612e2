"""Free TCP ports of the loopback interface."""

from __future__ import annotations

import errno
import os
import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that was free a moment ago; who takes it should be ready to ask for another."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def port_problem(port: int, host: str = LOOPBACK) -> str | None:
    """Why no server of this user's could listen there, as the end of a sentence; None when one could."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind((host, port))
        except PermissionError:
            return "needs more rights than this user has (ports below 1024 usually do)"
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            return "is taken" if taken else f"cannot be used on {host} ({os.strerror(error.errno or 0)})"
        return None
