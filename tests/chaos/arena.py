"""The whole service under attack: API, workers, durable Postgres, Valkey, a fake model, and a wire to each of them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import redis

from compaction.store import migrate
from compaction.summarizers.model_call import GULP_SECONDS
from ops.embedded import Postgres, Valkey
from ops.fake_provider import FakeProvider, FakeProviderThread
from tests.chaos.proxy import Proxy, Wires
from tests.chaos.slots import Keeper, Slot, clean_environ, wait

KEY = "ck_chaos123_" + "c" * 43
SUMMARY = [{"good_summary": {}, "delay_s": 0.4, "chunk_delay_s": 0.02}]  # a call is under way for 0.8 seconds
UNREAD_SECONDS = 2 * GULP_SECONDS  # a worker leaves the end of a reply in the kernel for up to a gulp
LEASE_SECONDS = 6  # a tenth of the usual; with less a busy machine ends leases that nobody struck
SETTINGS = {
    "COMPACTD_PORT": "0",
    "COMPACTD_BOOTSTRAP_API_KEY": KEY,
    "COMPACTD_WORKER_CONCURRENCY": "12",
    "COMPACTD_LEASE_SECONDS": str(LEASE_SECONDS),
    "COMPACTD_HEARTBEAT_SECONDS": "1",
    "COMPACTD_RECONCILE_SECONDS": "0.25",
    "COMPACTD_REDISPATCH_SECONDS": "2",
    "COMPACTD_DRAIN_SECONDS": "22",
    "COMPACTD_BACKOFF_BASE_SECONDS": "0.5",
    "ANTHROPIC_API_KEY": "sk-chaos",
}


@dataclass(frozen=True, slots=True)
class Disruption:
    """One injected fault as the director's own record. `in_flight`: model calls that it may have made worthless."""

    kind: str
    at: float
    in_flight: int


@dataclass(slots=True)
class Record:
    """What was done to the service; faults add to it from any thread."""

    disruptions: list[Disruption] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # promises of the moment that were broken
    poison: set[str] = field(default_factory=set)  # references of jobs that kill their workers
    cancelled: set[str] = field(default_factory=set)  # ids of jobs that somebody cancelled
    paid: dict[str, float] = field(default_factory=dict)  # by job id: when a kill came after its summary was saved

    def injected(self, kind: str, in_flight: int = 0) -> None:
        """Writes a fault down."""
        self.disruptions.append(Disruption(kind, time.time(), in_flight))


class Arena:
    """`with Arena(folder, workers=3) as arena:` everything runs until the end of the block."""

    def __init__(self, folder: Path, *, workers: int) -> None:
        self.folder = folder
        self.record = Record()
        self._worker_count = workers
        self._resources = ExitStack()
        self.postgres: Postgres
        self.valkey: Valkey
        self.fake: FakeProvider
        self.api: Slot
        self.workers: list[Slot] = []

    def __enter__(self) -> Self:
        with self._resources as resources:
            self.postgres = Postgres(self.folder / "postgres", durable=True)
            resources.callback(self.postgres.remove)
            self.postgres.start()
            self.valkey = resources.enter_context(Valkey(self.folder / "valkey"))
            migrate.upgrade(self.postgres.sqlalchemy_url())
            self.fake = resources.enter_context(FakeProviderThread(SUMMARY, ledger=self.folder / "calls.jsonl"))
            wires = resources.enter_context(Wires())
            self.api = self._slot(wires, "api", "api")
            self.workers = [self._slot(wires, f"worker{number + 1}", "worker") for number in range(self._worker_count)]
            keeper = resources.enter_context(Keeper([self.api, *self.workers]))
            for slot in keeper.slots:
                if not slot.wait_ready():
                    raise RuntimeError(f"{slot.name} did not start:\n{self.log(slot.name)[-2000:]}")
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        """Of the API process that runs now."""
        for name in sorted(self.folder.glob("api-*.ready"), key=lambda path: path.stat().st_mtime, reverse=True):
            return f"http://127.0.0.1:{json.loads(name.read_text())['port']}"
        raise RuntimeError("no API is ready")

    @property
    def direct_url(self) -> str:
        """Of Postgres, past every wire."""
        return self.postgres.sqlalchemy_url()

    @property
    def busy_calls(self) -> int:
        """Model calls under way in all workers."""
        return sum(worker.busy_calls for worker in self.workers)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query of our own, past the store and past every wire."""
        with psycopg.connect(self.postgres.url(), autocommit=True, connect_timeout=10) as connection:
            return connection.execute(sql.encode(), values).fetchall()

    def redis(self) -> redis.Redis:
        """A connection to Valkey, past every wire; close it."""
        return redis.Redis.from_url(self.valkey.url(), socket_timeout=2)

    def crash_postgres(self) -> None:
        """An immediate stop: no goodbye, no checkpoint. The next start recovers from the write-ahead log."""
        pid = self.postgres.pid
        os.kill(pid, signal.SIGQUIT)
        if not wait(lambda: not self.postgres.is_alive):
            raise RuntimeError(f"Postgres (pid {pid}) does not stop")

    def log(self, name: str) -> str:
        """What the processes of a slot wrote."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob(f"{name}-*.log")))

    def logs(self) -> Iterator[tuple[str, str]]:
        """Every log with the slot's name."""
        for slot in (self.api, *self.workers):
            yield slot.name, self.log(slot.name)

    def _slot(self, wires: Wires, name: str, module: str) -> Slot:
        def to_server(port: int) -> Proxy:
            return wires.proxy(port)

        provider_port = int(self.fake.url.rsplit(":", 1)[1])
        provider = wires.proxy(provider_port, is_last=_is_last, unread_seconds=UNREAD_SECONDS)
        ours = {"postgres": to_server(self.postgres.port), "valkey": to_server(self.valkey.port), "provider": provider}
        environ = clean_environ() | SETTINGS
        environ |= {
            "COMPACTD_DATABASE_URL": _rerouted(self.postgres.sqlalchemy_url(), self.postgres.port, ours["postgres"]),
            "COMPACTD_REDIS_URL": _rerouted(self.valkey.url(), self.valkey.port, ours["valkey"]),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{provider.port}",
        }
        return Slot(name, module, self.folder, environ, ours)


def _rerouted(url: str, port: int, proxy: Proxy) -> str:
    return url.replace(f":{port}/", f":{proxy.port}/")


def _is_last(data: bytes) -> bool:
    """Whether the model's API has said all it had to say: the end of a stream, or a refusal."""
    return b"message_stop" in data or data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
