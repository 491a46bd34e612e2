"""`python -m worker`: one worker process."""

from __future__ import annotations

import os
import sys
import warnings

from celery.exceptions import SecurityWarning

from compaction import telemetry, tracing
from compaction.errors import CompactdError
from compaction.settings import settings_from
from worker.app import QUEUE, make_app
from worker.bootstrap import start_process
from worker.tasks import register


def main() -> int:
    """Runs until SIGTERM or SIGINT; 0 after a clean drain, 2 on wrong settings."""
    try:
        settings = settings_from(os.environ)
        telemetry.configure(settings.log_level, service="worker")
        tracing.configure(settings.otlp_endpoint, service="compactd-worker")
        process = start_process(settings)
    except CompactdError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    # About root and pickle: we take JSON alone, and the image runs as nobody.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = make_app(settings.redis_url)
    register(app, process)
    app.set_current()
    try:
        app.worker_main(
            [
                "--quiet",  # its banner is no log line
                "worker",
                "--pool=threads",
                f"--concurrency={settings.worker_concurrency}",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",  # no setting exists for these three (facts/queue.md S4)
                f"--queues={QUEUE}",
                f"--loglevel={settings.log_level}",
            ]
        )
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        process.stop()
        tracing.close()


if __name__ == "__main__":
    sys.exit(main())
