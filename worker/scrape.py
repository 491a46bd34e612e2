"""The worker's /metrics, /healthz and /readyz: a small server in a thread of its own, so that a stuck loop can be seen.

Liveness asks what a restart would mend: a loop that turns no more. Readiness asks what a rollout waits for: a beat
that Postgres took a moment ago. A database that is away makes workers unready, and nobody restarts them for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from threading import Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from compaction.settings import SettingsError
from compaction.store.engine import Database
from worker import metrics
from worker.heartbeat import Heart

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

STUCK_SECONDS = 60.0  # a default lease: by then its jobs are others', and only a restart helps
PLAIN = ("Content-Type", "text/plain; charset=utf-8")


def watch(heart: Heart, lag_seconds: Callable[[], float], database: Database) -> None:
    """From now on each scrape asks the heart, the loop and the pool how they are."""
    metrics.CONNECTIONS.labels("in_use").set_function(database.in_use)
    metrics.CONNECTIONS.labels("total").set(database.pool_size)
    metrics.SLOTS.labels("busy").set_function(heart.running)
    metrics.SLOTS.labels("total").set_function(lambda: heart.slots)
    metrics.LOOP_LAG.set_function(lag_seconds)
    metrics.HEARTBEAT_AGE.set_function(heart.silent_seconds)


class Health:
    """How the process is, for whoever decides about its life."""

    def __init__(self, heart: Heart, lag_seconds: Callable[[], float], lease_seconds: float) -> None:
        self._heart = heart
        self._lag_seconds = lag_seconds
        self._lease_seconds = lease_seconds
        self.listens = False  # for rings, and for signals

    def alive(self) -> str | None:
        """What only a restart would mend; None: nothing."""
        lag = self._lag_seconds()
        return f"the loop has been stuck for {lag:.0f} s" if lag > STUCK_SECONDS else None

    def ready(self) -> str | None:
        """Why it takes no jobs now; None: it does."""
        if self._heart.draining:
            return "draining"
        if not (self.listens and self._heart.has_beaten):
            return "starting"
        silent = self._heart.silent_seconds()
        return f"no beat has been stored for {silent:.0f} s" if silent > self._lease_seconds else None


class Scrape:
    """Serves registry and health until `stop`; `port` 0 takes any free one. Raises SettingsError when it is taken."""

    def __init__(self, host: str, port: int, health: Health) -> None:
        self.health = health
        self._probes = {"/healthz": health.alive, "/readyz": health.ready}
        self._metrics = make_wsgi_app(metrics.REGISTRY)
        try:
            self._server = make_server(host, port, self._answer, ThreadingWSGIServer, handler_class=_Quiet)
        except OSError:
            raise SettingsError(
                f"Port {port} on {host} cannot be used. Set COMPACTD_METRICS_PORT to a free port, or to nothing."
            ) from None
        self.port: int = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, daemon=True, name="compactd-scrape")
        self._thread.start()

    def stop(self) -> None:
        """Closes the port."""
        with suppress(OSError):
            self._server.shutdown()
            self._server.server_close()
        self._thread.join(timeout=5)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        probe = self._probes.get(environ.get("PATH_INFO", ""))
        if probe is None:
            answer: Iterable[bytes] = self._metrics(environ, start)
            return answer
        problem = probe()
        status = HTTPStatus.OK if problem is None else HTTPStatus.SERVICE_UNAVAILABLE
        start(f"{status.value} {status.phrase}", [PLAIN])  # a list of its own: the server adds the length to it
        return [f"{problem or 'ok'}\n".encode()]


class _Quiet(WSGIRequestHandler):
    """Probes come every few seconds; a line each would bury the others."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Says nothing."""
