"""Ids of tool calls: valid by the API's patterns, and each used once in a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction.core.fields import SERVER_ID, TOOL_ID

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_SERVER_PREFIX = "srvtoolu_"


class ToolIds:
    """Hands out ids. The first call with a valid id keeps it; others get a new one that no call of the history has."""

    def __init__(self, stored: Iterable[str]) -> None:
        self._history = stored  # read when the first new id is needed: most histories need none
        self._stored: set[str] = set()
        self._given: set[str] = set()
        self._counts: dict[str, int] = {}

    def claim(self, stored: str, *, server: bool = False) -> str:
        """The id that a call stored under `stored` is sent with."""
        valid = SERVER_ID if server else TOOL_ID
        given = stored if valid.fullmatch(stored) and stored not in self._given else self._new(stored, server=server)
        self._given.add(given)
        return given

    def _new(self, stored: str, *, server: bool) -> str:
        stem = _ODD.sub("_", stored)
        if server:
            stem = _SERVER_PREFIX + stem.removeprefix(_SERVER_PREFIX).replace("-", "_")
        self._stored.update(self._history)
        self._history = ()
        count = self._counts.get(stem, 1)
        while True:  # ends: each id of the history is met at most once per stem
            count += 1
            new = f"{stem}_{count}"
            if new not in self._stored and new not in self._given:
                self._counts[stem] = count
                return new
