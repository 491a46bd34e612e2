"""The worker's /metrics: one small server in a thread of its own, so that a stuck loop can be seen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from prometheus_client import start_http_server

from compaction.settings import SettingsError
from worker import metrics
from worker.heartbeat import Heart


def watch(heart: Heart, lag_seconds: Callable[[], float]) -> None:
    """From now on each scrape asks the heart and the loop how they are."""
    metrics.SLOTS.labels("busy").set_function(heart.running)
    metrics.SLOTS.labels("total").set_function(lambda: heart.slots)
    metrics.LOOP_LAG.set_function(lag_seconds)
    metrics.HEARTBEAT_AGE.set_function(heart.silent_seconds)


class Scrape:
    """Serves the registry until `stop`; `port` 0 takes any free one. Raises SettingsError when the port is taken."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._server, self._thread = start_http_server(port, host, metrics.REGISTRY)
        except OSError:
            raise SettingsError(
                f"Port {port} on {host} cannot be used. Set COMPACTD_METRICS_PORT to a free port, or to nothing."
            ) from None
        self.port: int = self._server.server_port

    def stop(self) -> None:
        """Closes the port."""
        with suppress(OSError):
            self._server.shutdown()
            self._server.server_close()
        self._thread.join(timeout=5)
