"""A stop closes what a start opened: no complaint in the logs, nothing left open for the interpreter to find."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2

from tests.integration.service import KEY, Service, history

PRIVATE = {
    "PYTHONWARNINGS": "default::ResourceWarning",  # tells of connections and loops that nobody closed
    "COMPACTD_LIMIT_TENANT_IN_FLIGHT": "5",  # so that there is a limiter to close
}


def test_processes_that_have_worked_end_without_a_complaint(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """While somebody waits for a job that does not end."""
    answers: list[httpx2.Response] = []
    with Service(tmp_path, database_url, redis_url, **PRIVATE) as service:
        service.put_session("s", history(4))
        assert service.compact("s")["status"] == "succeeded"
        job = service.enqueue("s", not_before=(datetime.now(UTC) + timedelta(days=1)).isoformat())
        url = f"{service.http.base_url}/v1/compactions/{job['id']}"
        headers = {"Authorization": f"Bearer {KEY}", "Prefer": "wait=60"}
        waiting = threading.Thread(target=lambda: answers.append(httpx2.get(url, headers=headers, timeout=90)))
        waiting.start()
        [worker] = service.workers
        worker.stop()
        assert worker.returncode == 0
    waiting.join()
    assert [answer.json()["status"] for answer in answers] == ["queued"]
    for name in ("api", "worker"):
        assert [line for line in service.log(name).splitlines() if _complains(line)] == [], name


def _complains(line: str) -> bool:
    """Whether a line of a log tells of trouble: ours are JSON; the interpreter's and Celery's banner are not."""
    try:
        return json.loads(line)["level"] in {"warning", "error", "critical"}
    except ValueError:
        return any(word in line for word in ("Traceback", "ResourceWarning", "was never", "Exception ignored"))
