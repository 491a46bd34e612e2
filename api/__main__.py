"""`python -m api`: serves the API with the settings of the environment until it gets SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

import uvicorn

from api.app import create_app
from api.protocol import BoundedProtocol
from api.services import Services
from compaction import telemetry, tracing
from compaction.errors import CompactdError
from compaction.settings import Settings, SettingsError, settings_from

DRAIN_SECONDS = 20  # how long a stop waits for answers under way; long waits end at once
KEEP_ALIVE_SECONDS = 75  # longer than the 60 s of common proxies, so that they and not we close idle connections
BACKLOG = 4096  # connections that may wait while the loop is busy: many producers wake up together
# New objects between two collections. Two thousand callers who wait hold a million objects, and the default of 700
# looked at all of them again and again while they were answered: half of the time (make bench-api).
GC_THRESHOLDS = (50_000, 10, 10)


class Server(uvicorn.Server):
    """uvicorn, telling where it listens and ending long waits when it is asked to stop."""

    def __init__(self, settings: Settings) -> None:
        app = create_app(settings)
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=BoundedProtocol,
                log_config=None,
                access_log=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
                server_header=False,
            )
        )
        self._app = app
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Future[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Binds, then says so: a log line, and the ready file with the real port."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.should_exit or not self.started:
            return
        gc.collect()
        gc.freeze()  # what is loaded by now is no garbage
        gc.set_threshold(*GC_THRESHOLDS)
        port = self.servers[0].sockets[0].getsockname()[1]
        telemetry.logger("api").info("listening", host=self._settings.host, port=port)
        if self._settings.ready_file:
            await asyncio.to_thread(_write, Path(self._settings.ready_file), {"port": port, "pid": os.getpid()})

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Asks the server to stop; waits for jobs answer with what there is."""
        held = getattr(self._app.state, "services", None)
        if held is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._end_waits, held)
        super().handle_exit(sig, frame)

    def _end_waits(self, held: Services) -> None:
        self._ending = asyncio.ensure_future(held.stop_waits())


def main() -> int:
    """Runs the server; 0 after a clean stop, 1 when it could not start, 2 for wrong settings."""
    try:
        settings = settings_from(os.environ)
    except SettingsError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - there is no log yet
        return 2
    telemetry.configure(settings.log_level, service="api")
    try:
        tracing.configure(settings.otlp_endpoint, service="compactd-api")
    except SettingsError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - as a wrong setting is told
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stopped)  # before uvicorn takes over, and when it gives the signal back after its stop
    server = Server(settings)
    try:
        server.run()
    except CompactdError as error:
        telemetry.logger("api").error("start.failed", code=error.code, message=error.message)
        return 1
    finally:
        tracing.close()
    return 0 if server.started else 1


def _stopped(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(0)


def _write(path: Path, facts: dict[str, int]) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(facts), encoding="ascii")
    draft.replace(path)  # a reader sees the whole file or none


if __name__ == "__main__":
    sys.exit(main())
