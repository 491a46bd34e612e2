"""The doctor at the bedside of a service whose parts are broken one by one: what it says, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest

from compaction.store import migrate
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import create_database, drop_database
from tests.integration.service import KEY, Service


def examined(url: str, key: str = KEY) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the checks by name."""
    done = run(url, "--json", key=key)
    document = json.loads(done.stdout)
    assert document["ok"] == (done.returncode == 0)
    return done.returncode, {check["name"]: check for check in document["checks"]}


def run(url: str, *options: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "COMPACTD_URL": url, "COMPACTD_API_KEY": key}
    command = [str(Path(sys.executable).with_name("compactd")), "doctor", *options]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr
    return done


def wrong(checks: dict[str, dict[str, Any]]) -> set[str]:
    found = {name for name, check in checks.items() if not check["ok"]}
    assert all(checks[name]["advice"] for name in found)
    return found


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, migrated_template: str
) -> Iterator[tuple[Service, Valkey]]:
    """A service with a database and a broker that nobody else uses."""
    url = create_database(postgres, "doctor", migrated_template)
    with (
        Valkey(tmp_path_factory.mktemp("valkey")) as broker,
        Service(tmp_path_factory.mktemp("service"), url, broker.url()) as running,
    ):
        yield running, broker
    drop_database(postgres, "doctor")


def address(service: Service) -> str:
    return str(service.http.base_url)


def test_a_healthy_service_is_told_so(service: tuple[Service, Valkey]) -> None:
    running, _ = service
    done = run(address(running))
    assert done.returncode == 0, done.stdout
    assert "All is well." in done.stdout
    for part in ("API", "key", "database", "migrations", "broker", "workers", "provider", "this clock"):
        assert part in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    code, checks = examined(address(running))
    assert (code, wrong(checks)) == (0, set())


def test_a_wrong_key_is_named(service: tuple[Service, Valkey]) -> None:
    code, checks = examined(address(service[0]), key="ck_wrong")
    assert (code, wrong(checks)) == (8, {"key"})
    assert "COMPACTD_API_KEY" in checks["key"]["advice"]


def test_nobody_at_the_address_ends_with_3() -> None:
    code, checks = examined("http://127.0.0.1:1")
    assert (code, wrong(checks)) == (3, {"API"})
    assert "make up" in checks["API"]["advice"]


def test_something_else_at_the_address_is_seen() -> None:
    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        code, checks = examined(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()
    assert (code, wrong(checks)) == (3, {"API"})
    assert "something else" in checks["API"]["detail"]


def test_a_paused_provider_is_named_with_its_reason(service: tuple[Service, Valkey]) -> None:
    running, _ = service
    error = {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    running.play([{"status": 401, "body": error}])
    running.put_session("paused", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 4)
    running.enqueue("paused")
    code, checks = running.until(
        lambda: found if (found := examined(address(running)))[0] else None, "the provider was not paused"
    )
    assert (code, wrong(checks)) == (8, {"provider"})
    assert "auth_error" in checks["provider"]["detail"]
    assert "ANTHROPIC_API_KEY" in checks["provider"]["advice"]
    name = running.http.get("/v1/providers").json()["data"][0]["name"]
    running.play()
    assert running.http.post(f"/v1/providers/{name}/resume").status_code == 200
    running.until(lambda: examined(address(running))[0] == 0, "the provider was not resumed")


def test_a_broker_that_is_away_and_workers_that_are_gone_are_named(service: tuple[Service, Valkey]) -> None:
    running, broker = service
    for worker in running.workers:
        worker.stop()
    running.workers.clear()
    code, checks = running.until(  # one that could not say goodbye is believed for a lease
        lambda: found if wrong((found := examined(address(running)))[1]) else None, "the workers were not missed"
    )
    assert (code, wrong(checks)) == (8, {"workers"})
    assert "python -m worker" in checks["workers"]["advice"]
    broker.stop()
    code, checks = examined(address(running))
    assert (code, wrong(checks)) == (8, {"workers", "broker"})
    done = run(address(running))
    assert "2 of 9 checks failed." in done.stdout


def test_tables_of_an_older_version_are_named(service: tuple[Service, Valkey], postgres: Postgres) -> None:
    running, _ = service
    with psycopg.connect(running.database_url.replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '0001'")
    code, checks = running.until(
        lambda: found if "migrations" in wrong((found := examined(address(running)))[1]) else None,
        "the old tables were not seen",
    )
    assert code == 8
    assert "alembic upgrade head" in checks["migrations"]["advice"]


def test_a_database_that_is_away_is_named(tmp_path: Path, valkey: Valkey) -> None:
    with Postgres(tmp_path / "postgres", durable=False) as alone:
        url = create_database(alone, "doctor")
        migrate.upgrade(url)
        with Service(tmp_path, url, valkey.url()) as running:
            alone.stop()
            code, checks = examined(address(running))
    assert code == 8
    assert {"database", "migrations", "workers"} <= wrong(checks)
    assert checks["migrations"]["detail"] == "could not be asked without the database"
