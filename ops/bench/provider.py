"""The fake provider as a process of its own, so that its CPU is nobody else's, and what its ledger tells."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from compaction.core import jsonbytes
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import wait_until
from ops.fake_provider.answers import CALLS, SCRIPT
from ops.fake_provider.script import good_summary_text
from ops.stack.settings import ROOT

START_SECONDS = 20.0
SUMMARY_CHARS = 12_000  # the median real summary has 11,700 (transcripts of real sessions)
FILLER = "Changed the retry loop in src/client.py so that it honours Retry-After; test_backoff covers it now. "


class Provider:
    """`with Provider(folder) as provider:` serves on `provider.url` until the block ends."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "provider.log"
        self._process: Process | None = None
        self._folder = folder
        self.url = ""

    @property
    def pid(self) -> int:
        """Its process id; 0 before the start."""
        return self._process.pid if self._process else 0

    def __enter__(self) -> Self:
        """Starts."""
        self._process = Process(
            Command(
                name="The fake provider",
                arguments=(sys.executable, "-m", "ops.fake_provider"),
                folder=ROOT,
                log=self._log,
                environ={**os.environ, "PYTHONUNBUFFERED": "1"},
                stop_signal=signal.SIGTERM,
            )
        )
        if not wait_until(lambda: "http://" in self._said(), START_SECONDS):
            raise RuntimeError(f"The fake provider did not start: {self._said()}")
        self.url = self._said().strip().splitlines()[-1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops."""
        if self._process is not None:
            self._process.stop()

    def play(self, *, latency_seconds: float, deltas: int) -> None:
        """From now on each answer is a good summary in so many deltas over so many seconds; the ledger begins anew."""
        script = {
            "steps": [{"text": long_summary()}],
            "latency_s": latency_seconds,
            "chunks": deltas,
            "exact_usage": False,
            "keep_bodies": False,
        }
        self._ask("POST", SCRIPT, script)
        self._ask("DELETE", CALLS)

    def calls(self) -> list[dict[str, Any]]:
        """The model calls since `play`, as the ledger's lines."""
        calls: list[dict[str, Any]] = self._ask("GET", CALLS)["calls"]
        return calls

    def _ask(self, method: str, path: str, body: Any = None) -> Any:  # noqa: ANN401 - JSON
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:  # noqa: S310 - the same
            return jsonbytes.decode(answer.read())

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""


def most_in_flight(calls: Iterable[Mapping[str, Any]]) -> int:
    """How many calls were open at the same moment at most."""
    moments = [(call["at"], 1) for call in calls]
    moments += [(call["ended_at"], -1) for call in calls if call["ended_at"] is not None]
    most = now = 0
    for _, step in sorted(moments):
        now += step
        most = max(most, now)
    return most


def long_summary() -> str:
    """A summary that every validator takes, of the usual length."""
    text = good_summary_text({})
    filler = FILLER * ((SUMMARY_CHARS - len(text)) // len(FILLER))
    return text.replace("</summary>", f"\n{filler}\n</summary>")
