"""What can go wrong with embedded servers and the local stack. The text says what to do; programs print it and end."""

from __future__ import annotations


class LocalError(Exception):
    """The local stack cannot do what was asked."""


class Interrupted(LocalError):
    """Somebody asked to stop while something was being waited for."""

    def __init__(self) -> None:
        super().__init__("Interrupted.")
