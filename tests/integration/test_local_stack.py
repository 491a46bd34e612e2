"""The local stack starts real servers, tells stack.json, and refuses with words what cannot be."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.integration.local_stack import LocalStack, processes_about

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A running stack that the tests of this file only look at."""
    folder = tmp_path_factory.mktemp("stack") / "local"
    with LocalStack(folder, ANTHROPIC_BASE_URL="http://127.0.0.1:9", NO_PROXY="example.org") as running:
        running.wait_ready()
        yield running


@pytest.fixture
def state(stack: LocalStack) -> dict[str, Any]:
    """Its stack.json."""
    return stack.state


def test_stack_json_names_servers_that_answer_and_processes_that_live(stack: LocalStack, state: dict[str, Any]) -> None:
    assert set(state) == {"url", "api_key", "database_url", "redis_url", "pids"}
    assert set(state["pids"]) == {"supervisor", "api", "worker", "postgres", "valkey"}
    assert state["pids"]["supervisor"] == stack.process.pid
    for pid in state["pids"].values():
        os.kill(pid, 0)
    assert re.fullmatch(r"ck_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", state["api_key"])
    with urllib.request.urlopen(state["url"], timeout=10) as answer:
        assert answer.status == 200


def test_postgres_waits_for_the_disk_and_our_role_is_no_superuser(state: dict[str, Any]) -> None:
    with psycopg.connect(state["database_url"]) as connection:
        row = connection.execute("select current_setting('fsync'), current_setting('is_superuser')").fetchone()

    assert row == ("on", "off")


def test_valkey_never_throws_a_key_away(state: dict[str, Any]) -> None:
    with redis.Redis.from_url(state["redis_url"]) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_secrets_are_for_their_owner_only(stack: LocalStack) -> None:
    for name in ("stack.json", "api_key", "postgres/passwords.json", "valkey/valkey.conf", "log/api.log"):
        assert stat.S_IMODE((stack.folder / name).stat().st_mode) == 0o600, name


def test_no_argument_of_a_process_has_a_password_in_it(stack: LocalStack, state: dict[str, Any]) -> None:
    passwords = [part.split("@")[0] for url in ("database_url", "redis_url") for part in state[url].split(":")[-2:-1]]
    assert len(passwords) == 2

    for process in processes_about(stack.folder):
        assert not any(password in process for password in passwords)


def test_servers_refuse_who_has_no_password(state: dict[str, Any]) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(re.sub(r"://(\w*):[^@]+@", r"://\1:wrong@", state["database_url"]))
    with (
        redis.Redis.from_url(re.sub(r"://:[^@]+@", "://", state["redis_url"])) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_the_environment_passes_through_to_api_and_worker(state: dict[str, Any]) -> None:
    for name in ("api", "worker"):
        environ = Path(f"/proc/{state['pids'][name]}/environ").read_bytes().split(b"\0")
        assert b"ANTHROPIC_BASE_URL=http://127.0.0.1:9" in environ
        assert b"COMPACTD_WORKER_CONCURRENCY=300" in environ
        assert b"NO_PROXY=example.org,127.0.0.1,localhost" in environ
        assert any(item.startswith(b"COMPACTD_DATABASE_URL=postgresql+psycopg://compactd:") for item in environ)
        assert any(item.startswith(b"COMPACTD_REDIS_URL=redis://:") for item in environ)


def test_a_second_stack_in_one_folder_is_refused_and_the_first_stays(stack: LocalStack, state: dict[str, Any]) -> None:
    with LocalStack(stack.folder) as second:
        code, _, err = second.end()

    assert code == 1
    assert f"pid {stack.process.pid}" in err
    assert "COMPACTD_LOCAL_DIR" in err
    assert stack.state == state
    with psycopg.connect(state["database_url"]) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_demo_uses_the_stack_that_runs_and_leaves_it_running(stack: LocalStack, state: dict[str, Any]) -> None:
    with LocalStack(stack.folder, "demo") as demo:
        code, out, err = demo.end()

    assert code == 0
    assert out.split() == [state["url"], state["api_key"]]
    assert "Using the stack that runs" in err
    assert stack.state == state


def test_a_demo_starts_a_stack_of_its_own_and_hands_its_exit_code_on(tmp_path: Path) -> None:
    transcript = tmp_path / "my session.jsonl"
    transcript.touch()

    with LocalStack(tmp_path / "local", "demo", str(transcript)) as demo:
        code, out, _ = demo.end()

        assert code == 3  # what the stand-in ends with when it gets a file
        assert out.strip().endswith(str(transcript))
        assert demo.leftovers() == []


def test_a_demo_of_a_missing_file_starts_nothing(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", "demo", "no-such-file") as demo:
        code, _, err = demo.end()

    assert code == 1
    assert "There is no file no-such-file" in err
    assert not (tmp_path / "local").exists()


def test_two_stacks_in_two_folders_run_side_by_side(tmp_path: Path, state: dict[str, Any]) -> None:
    with LocalStack(tmp_path / "local", COMPACTD_WORKERS="2") as other:
        theirs = other.wait_ready()

        assert theirs["url"] != state["url"]
        assert theirs["api_key"] != state["api_key"]
        assert len(set(theirs["pids"]["worker"])) == 2
        for each in (theirs, state):
            with psycopg.connect(each["database_url"]) as connection:
                assert connection.execute("select 1").fetchone() == (1,)


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with LocalStack(tmp_path / "local", COMPACTD_PORT=str(port)) as refused:
            code, _, err = refused.end()

    assert code == 1
    assert f"Port {port} is taken" in err
    assert "COMPACTD_PORT" in err


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", COMPACTD_WORKERS="many") as refused:
        code, _, err = refused.end()

    assert code == 1
    assert "COMPACTD_WORKERS must be a whole number from 1 to 64" in err


@pytest.mark.parametrize(
    ("part", "words"), [("api", "api ended. The end of"), ("migrate", "The migration failed")], ids=["api", "migrate"]
)
def test_a_part_that_cannot_start_ends_the_start_with_its_own_words(tmp_path: Path, part: str, words: str) -> None:
    with LocalStack(tmp_path / "local", roles={part: "broken"}) as broken:
        code, _, err = broken.end()

        assert code == 1
        assert words in err
        assert "COMPACTD_SOMETHING must be a number" in err
        assert broken.leftovers() == []
