"""The drill of docs/operations.md: a backup under load, the loss of everything, a restore, and the work goes on."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ops.embedded import Postgres, Valkey
from ops.embedded.binaries import postgres_folder
from ops.embedded.databases import create_database, drop_database
from tests.integration.service import Service, history

SLOW = {"delay_s": 30, "good_summary": {}}


def program(postgres: Postgres, name: str, *arguments: str) -> None:
    """One of Postgres's own programs, with the password where no other user can read it."""
    url = psycopg.conninfo.conninfo_to_dict(postgres.url())
    environ = {**os.environ, "PGPASSWORD": str(url["password"])}
    where = ("-h", str(url["host"]), "-p", str(url["port"]), "-U", str(url["user"]))
    done = subprocess.run(
        [str(postgres_folder() / name), *where, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def name_in(url: str) -> str:
    """The database's name."""
    return url.rsplit("/", 1)[1]


@pytest.fixture
def restored_url(postgres: Postgres) -> Iterator[str]:
    """An empty database, on a server that may be another one."""
    yield create_database(postgres, "restored")
    drop_database(postgres, "restored")


def accepted(service: Service, count: int) -> list[str]:
    """Jobs of as many sessions, accepted."""
    ids = []
    for number in range(count):
        service.put_session(f"s{number}", history(12))
        ids.append(str(service.enqueue(f"s{number}", instructions=f"Keep note {number}.")["id"]))
    return ids


def test_after_a_restore_every_accepted_job_ends_and_every_result_is_there(
    tmp_path: Path, postgres: Postgres, database_url: str, restored_url: str, valkey: Valkey
) -> None:
    dump = tmp_path / "compactd.dump"
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    with Service(tmp_path / "before", database_url, valkey.url(), COMPACTD_WORKER_CONCURRENCY="2") as service:
        service.put_session("done", history(20))
        finished = service.compact("done")
        kept = service.result(finished["id"])
        view = service.view("done", "full")
        service.play([SLOW])
        jobs = accepted(service, 6)  # two run, four wait
        service.until(
            lambda: sum(service.job(job)["status"] == "running" for job in jobs) == 2, "two jobs did not start"
        )
        appending = Appending(service)
        appending.start()
        program(postgres, "pg_dump", "--format=custom", f"--file={dump}", name_in(database_url))
        appending.stop()
        service.kill_workers()
        service.flush_redis()  # it is in no backup

    program(postgres, "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={name_in(restored_url)}", str(dump))
    with Service(tmp_path / "after", restored_url, valkey.url()) as service:
        assert service.http.get("/readyz").json()["parts"]["migrations"]["ok"]
        for job in jobs:
            ended = service.wait(job)
            assert ended["status"] == "succeeded", ended
            assert service.result(job)["job_id"] == job
        assert service.job(finished["id"])["status"] == "succeeded"
        assert service.result(finished["id"]) == kept
        assert service.view("done", "full") == view
        whole_batches(service.view("busy", "full"))
        service.put_session("new", history(12))
        assert service.compact("new")["status"] == "succeeded"


class Appending(threading.Thread):
    """A producer who goes on while the backup is made, three messages a batch."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service
        self._stop_asked = threading.Event()
        service.put_session("busy", batch(0))

    def run(self) -> None:
        """Appends until it is told to stop."""
        number = 1
        while not self._stop_asked.is_set():
            assert self._service.append("busy", batch(number)).status_code == 200
            number += 1

    def stop(self) -> None:
        """Ends it."""
        self._stop_asked.set()
        self.join()


def batch(number: int) -> list[dict[str, Any]]:
    """Three messages that belong together."""
    return [{"role": "user", "content": f"batch {number} part {part}"} for part in range(3)]


def whole_batches(messages: list[dict[str, Any]]) -> None:
    """What the backup saw of the producer's work is whole batches, in their order."""
    said = [message["content"] for message in messages]
    assert said
    assert said == [f"batch {place // 3} part {place % 3}" for place in range(len(said))]
    assert len(said) % 3 == 0


def test_fencing_tokens_go_on_where_they_were(
    tmp_path: Path, postgres: Postgres, database_url: str, restored_url: str
) -> None:
    """A restored sequence that began anew would give two workers one token."""
    with psycopg.connect(database_url.replace("+psycopg", "")) as conn:
        conn.execute("SELECT nextval('lease_tokens') FROM generate_series(1, 1000)")
    dump = tmp_path / "tokens.dump"
    program(postgres, "pg_dump", "--format=custom", f"--file={dump}", name_in(database_url))
    program(postgres, "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={name_in(restored_url)}", str(dump))
    with psycopg.connect(restored_url.replace("+psycopg", "")) as conn:
        row = conn.execute("SELECT nextval('lease_tokens')").fetchone()
    assert row is not None
    assert row[0] > 1000
