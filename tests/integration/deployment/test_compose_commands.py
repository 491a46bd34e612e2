"""The commands of docker-compose.yml, with the environment that Compose would give them, as processes on this machine.

No container engine is needed: embedded servers stand in for the images of others, and what a container has of its own
(its address, its port) is exchanged for ours. Everything else is what the file says, `.env` being `.env.example` with
the passwords filled in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
import redis

from ops.embedded import Postgres, Valkey
from ops.embedded.binaries import postgres_folder, valkey_server
from ops.embedded.databases import create_database, drop_database
from ops.embedded.ports import free_port
from ops.embedded.processes import Command, Process, run_to_end
from ops.embedded.programs import Programs
from ops.embedded.waiting import wait_until
from tests.integration.deployment import compose
from tests.integration.service import history

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 60.0  # a busy machine; nothing here is about speed
KEY = "ck_compose1_" + "c" * 43
ENV_FILE = {
    **dict(re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)),
    "POSTGRES_PASSWORD": "postgrespassword",
    "VALKEY_PASSWORD": "valkeypassword",
    "GRAFANA_PASSWORD": "grafanapassword",
    "COMPACTD_BOOTSTRAP_API_KEY": KEY,
}


@dataclass
class Machine:
    """The containers' names and ports, as this machine has them."""

    folder: Path
    database_url: str
    redis_url: str
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)

    def environ(self, service: compose.Service) -> dict[str, str]:
        """A container's environment: what Compose sets and a path, with our addresses for those of the network."""
        given = {**service.environ, "PATH": os.environ["PATH"]}
        assert given["COMPACTD_DATABASE_URL"] == (
            "postgresql+psycopg://compactd:postgrespassword@postgres:5432/compactd"
        )
        assert given["COMPACTD_REDIS_URL"] == "redis://:valkeypassword@redis:6379/0"
        return given | {"COMPACTD_DATABASE_URL": self.database_url, "COMPACTD_REDIS_URL": self.redis_url}

    def start(self, name: str, kind: str, port_name: str | None = None) -> Process:
        """Starts one container's command; its port is a free one here."""
        service = compose.service(ROOT, kind, ENV_FILE)
        environ = self.environ(service)
        if port_name is not None:
            self.ports[name] = free_port()
            environ |= {port_name: str(self.ports[name]), "COMPACTD_HOST": "127.0.0.1"}
        command = Command(
            name=name,
            arguments=here(service.command),
            folder=ROOT,
            log=self.folder / f"{name}.log",
            environ=environ,
            stop_seconds=service.stop_seconds,
        )
        self.processes[name] = Process(command)
        return self.processes[name]

    def healthy(self, name: str, kind: str, port: str) -> None:
        """Waits until the healthcheck's own command is content."""
        test = compose.service(ROOT, kind, ENV_FILE).health
        assert test[0] == "CMD"
        command = [word.replace(f":{port}/", f":{self.ports[name]}/") for word in here(test[1:])]
        assert command != list(here(test[1:])), "the healthcheck asks another port"
        process = self.processes[name]

        def look() -> bool:
            assert process.is_alive, (self.folder / f"{name}.log").read_text()[-2000:]
            return subprocess.run(command, capture_output=True, check=False).returncode == 0

        assert wait_until(look, PATIENCE_SECONDS), (self.folder / f"{name}.log").read_text()[-2000:]


def here(command: list[str]) -> tuple[str, ...]:
    """The command with this environment's Python."""
    return tuple(sys.executable if word == "python" else word for word in command)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, valkey: Valkey) -> Iterator[Machine]:
    """A fresh database and a broker."""
    url = create_database(postgres, "composed")
    started = Machine(tmp_path_factory.mktemp("compose"), url, valkey.url())
    yield started
    for process in started.processes.values():
        process.stop()
    drop_database(postgres, "composed")


def test_the_services_do_a_job_together_and_stop_in_time(machine: Machine) -> None:
    migrated = machine.start("migrate", "migrate")
    assert wait_until(lambda: not migrated.is_alive, PATIENCE_SECONDS)
    assert migrated.returncode == 0, (machine.folder / "migrate.log").read_text()[-2000:]

    machine.start("api", "api", "COMPACTD_PORT")
    for number in (1, 2):
        machine.start(f"worker-{number}", "worker", "COMPACTD_METRICS_PORT")
    machine.healthy("api", "api", "8080")
    for number in (1, 2):
        machine.healthy(f"worker-{number}", "worker", "9464")

    url = f"http://127.0.0.1:{machine.ports['api']}"
    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=90) as http:
        http.put("/v1/sessions/composed", json={"model": "claude-haiku-4-5"})
        http.post("/v1/sessions/composed/messages", json={"messages": history(12)})
        job = http.post("/v1/compactions", json={"session_id": "composed"}).json()
        ended = http.get(f"/v1/compactions/{job['id']}", headers={"Prefer": "wait=60"}).json()
        assert ended["status"] == "succeeded", ended
        assert http.get(ended["result_url"]).json()["strategy"] == "extractive"  # there is no key for a model

    for name, process in machine.processes.items():
        process.stop()  # kills after the grace period, and then the exit code says so
        assert process.returncode == 0, name


def test_a_worker_says_when_it_takes_jobs_and_when_no_more(machine: Machine) -> None:
    worker = machine.start("worker-3", "worker", "COMPACTD_METRICS_PORT")
    machine.healthy("worker-3", "worker", "9464")
    address = f"http://127.0.0.1:{machine.ports['worker-3']}"

    assert wait_until(lambda: httpx2.get(f"{address}/readyz").status_code == 200, PATIENCE_SECONDS)
    assert httpx2.get(f"{address}/healthz").text == "ok\n"
    assert "compaction_worker_slots" in httpx2.get(f"{address}/metrics").text
    worker.stop()
    assert worker.returncode == 0


def test_the_brokers_command_keeps_what_it_is_told_and_evicts_nothing(tmp_path: Path) -> None:
    service = compose.service(ROOT, "redis", ENV_FILE)
    port = free_port()
    shell, flag, script = service.command
    placed = script.replace("exec valkey-server", f"exec valkey-server --port {port} --bind 127.0.0.1")
    assert placed != script
    command = Command(
        name="redis",
        arguments=(shell, flag, placed),
        folder=tmp_path,
        log=tmp_path / "redis.log",
        environ={**service.environ, "PATH": f"{valkey_server().parent}:{os.environ['PATH']}"},
    )
    process = Process(command)
    try:
        with redis.Redis(host="127.0.0.1", port=port, password="valkeypassword") as client:
            assert wait_until(lambda: answers(client), PATIENCE_SECONDS), (tmp_path / "redis.log").read_text()
            told: Any = client.config_get("*")
        assert (told["appendonly"], told["maxmemory-policy"]) == ("yes", "noeviction")
        assert int(told["maxmemory"]) == 512 * 2**20
        assert not answers(redis.Redis(host="127.0.0.1", port=port))  # nobody without the password
    finally:
        process.stop()


def answers(client: redis.Redis) -> bool:
    """Whether the broker takes this client."""
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def test_the_databases_arguments_make_a_cluster_that_sorts_like_ours(tmp_path: Path, postgres: Postgres) -> None:
    """`initdb` takes them, and the order of text is that of the embedded cluster."""
    arguments = compose.service(ROOT, "postgres", ENV_FILE).environ["POSTGRES_INITDB_ARGS"].split()
    programs = Programs.find()
    command = Command(
        name="initdb",
        arguments=(programs.path("initdb"), "--show", "-D", "/tmp/compactd-no-such-data", *arguments),  # noqa: S108 - shown only
        folder=Path("/"),
        log=tmp_path / "initdb.log",
        identity=programs.identity,
    )
    run_to_end(command, PATIENCE_SECONDS)
    with psycopg.connect(postgres.url()) as conn:
        row = conn.execute("SELECT datlocprovider, datlocale FROM pg_database WHERE datname = current_database()")
        assert row.fetchone() == ("b", "C.UTF-8")
    assert {"--locale-provider=builtin", "--builtin-locale=C.UTF-8"} == set(arguments)


def test_the_databases_healthcheck_asks_a_server_that_answers(postgres: Postgres) -> None:
    kind, program, *arguments = compose.service(ROOT, "postgres", ENV_FILE).health
    assert (kind, program) == ("CMD", "pg_isready")
    command = [str(postgres_folder() / program), *arguments, "-h", "127.0.0.1", "-p", str(postgres.port)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
