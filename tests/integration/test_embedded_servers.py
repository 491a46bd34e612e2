"""Embedded servers and the databases of tests: real, separate, and back after a crash."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest
import redis

from ops.embedded import Postgres, postmaster
from ops.embedded.errors import Interrupted, LocalError
from ops.embedded.waiting import StopRequest, wait_until


def one(url: str, query: str) -> object:
    """The only value of a query."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def test_postgres_is_18_and_sorts_alike_everywhere(postgres_url: str) -> None:
    assert str(one(postgres_url, "show server_version")).startswith("18.")
    locale = "select datlocprovider::text || ' ' || datlocale from pg_database where datname = 'compactd'"
    assert one(postgres_url, locale) == "b C.UTF-8"
    assert one(postgres_url, "show server_encoding") == "UTF8"


def test_a_database_of_a_test_is_migrated_and_its_own(database_url: str, postgres: Postgres) -> None:
    assert one(database_url, "select count(*) from alembic_version") == 1
    assert one(database_url, "select current_database()") not in {"compactd", "postgres"}
    assert one(database_url, "select current_user") == "compactd"


@pytest.mark.parametrize("turn", [1, 2])
def test_what_one_test_writes_another_does_not_see(empty_database_url: str, redis_url: str, turn: int) -> None:
    with psycopg.connect(empty_database_url.replace("+psycopg", "")) as connection:
        connection.execute("create table once ()")
    with redis.Redis.from_url(redis_url) as client:
        assert client.incr("once") == 1


def test_a_killed_server_comes_back_with_its_data_on_the_same_port(tmp_path: Path) -> None:
    with Postgres(tmp_path / "postgres") as server:
        url, port = server.url(), server.port
        with psycopg.connect(url) as connection:
            connection.execute("create table kept as select 42 as answer")
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: not server.is_alive, 30.0)

        server.start()

        assert server.port == port
        assert one(url, "select answer from kept") == 42


@pytest.mark.parametrize("proc", ["/proc", "/no-such-folder"], ids=["proc", "ps"])
def test_a_server_is_known_by_its_data(postgres: Postgres, monkeypatch: pytest.MonkeyPatch, proc: str) -> None:
    monkeypatch.setattr(postmaster, "PROC", Path(proc))

    assert postmaster.is_server(postgres.pid, postgres.data)
    assert not postmaster.is_server(postgres.pid, postgres.data.parent)
    assert not postmaster.is_server(os.getpid(), postgres.data)


def test_a_cluster_without_its_passwords_is_left_as_it_is(tmp_path: Path) -> None:
    with Postgres(tmp_path / "postgres", durable=False):
        pass
    (tmp_path / "postgres" / "passwords.json").unlink()

    with pytest.raises(LocalError, match=r"passwords\.json is missing"):
        Postgres(tmp_path / "postgres").start()

    assert (tmp_path / "postgres" / "data" / "PG_VERSION").exists()


def test_an_interrupted_first_start_leaves_nothing_that_stops_the_next(tmp_path: Path) -> None:
    stop = StopRequest()
    stop.is_asked = True
    with pytest.raises(Interrupted):
        Postgres(tmp_path / "postgres", durable=False, stop=stop).start()

    with Postgres(tmp_path / "postgres", durable=False) as server:
        assert one(server.url(), "select 1") == 1


def test_a_removed_server_leaves_no_file(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "postgres", durable=False).start()

    server.remove()

    assert not server.is_alive
    assert list(tmp_path.iterdir()) == []
