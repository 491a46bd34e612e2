"""With COMPACTD_BODY_KEYS set, nothing that was said in a session can be read in the database; keys can be changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from ops.embedded import Valkey
from tests.integration.service import Service, history

FIRST, SECOND = (f"{name}:{base64.b64encode(name.encode() * 16).decode()}" for name in ("k1", "k2"))
WORDS = "canary-{place}-in-a-session"  # one for each place where a session's words can stand
PLACES = ("message", "call", "result", "system", "tool", "file", "memory", "instructions", "summary")
HASHES = {"api_keys.secret_hash", "idempotency_keys.request_hash"}  # they tell nothing back
SECRET = "whsec_" + base64.b64encode(b"canary-hook-secret-canary-hook-s").decode()


def canary(place: str) -> str:
    return WORDS.format(place=place)


@contextmanager
def running(folder: Path, database_url: str, valkey: Valkey, keys: str) -> Iterator[Service]:
    folder.mkdir(exist_ok=True)
    with Service(folder, database_url, valkey.url(), COMPACTD_BODY_KEYS=keys) as service:
        yield service


def talk() -> list[dict[str, Any]]:
    """A session whose words can be found again."""
    messages = history(12)
    call = {"type": "tool_use", "id": "toolu_c", "name": "Read", "input": {"path": canary("call")}}
    result = {"type": "tool_result", "tool_use_id": "toolu_c", "content": canary("result") + " value" * 500}
    return [
        {"role": "user", "content": canary("message")},
        *messages,
        {"role": "user", "content": "Read on."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Done."},
    ]


def told(service: Service, name: str) -> dict[str, Any]:
    """A session with words in every place, compacted; the job as it ended."""
    tool = {"name": "Read", "description": canary("tool"), "input_schema": {"type": "object"}}
    service.put_session(name, talk(), system=canary("system"), tools=[tool])
    for kind in ("files", "memory"):
        body = {"content": canary(kind.removesuffix("s"))}
        assert service.http.put(f"/v1/sessions/{name}/state/{kind}/notes", json=body).status_code == 204
    wanted = {"session_id": name, "trigger": "manual", "instructions": canary("instructions")}
    answer = service.http.post("/v1/compactions", json=wanted, headers={"Idempotency-Key": f"key-{name}"})
    again = service.http.post("/v1/compactions", json=wanted, headers={"Idempotency-Key": f"key-{name}"})
    assert answer.json() == again.json()
    job: dict[str, Any] = service.wait(answer.json()["id"])
    return job


def rows_of(database_url: str) -> Iterator[tuple[str, bytes | str]]:
    """Every value of every column of every table that can hold words, with its place."""
    engine = create_engine(database_url, poolclass=NullPool)
    query = text(
        "SELECT c.relname, a.attname, t.typname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_type t ON t.oid = a.atttypid WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped "
        "AND c.relnamespace = 'public'::regnamespace AND t.typname IN ('text', 'bytea', 'jsonb', '_text', 'varchar')"
    )
    with engine.connect() as conn:
        for table, column, kind in list(conn.execute(query)):
            shown = column if kind == "bytea" else f"{column}::text"
            for (value,) in conn.exec_driver_sql(f"SELECT {shown} FROM {table} WHERE {column} IS NOT NULL"):  # noqa: S608 - names of our own catalog
                yield f"{table}.{column}", bytes(value) if kind == "bytea" else value


@pytest.mark.parametrize("fails", [False, True])
def test_no_word_of_a_session_is_in_any_table(
    tmp_path: Path, database_url: str, valkey: Valkey, *, fails: bool
) -> None:
    with running(tmp_path, database_url, valkey, FIRST) as service:
        summary = (
            "<summary>\n" + "\n".join(f"{number}. {canary('summary')}" for number in range(1, 10)) + "\n</summary>"
        )
        service.play([{"text": canary("summary")}] if fails else [{"text": summary}])
        hook = {"event": "pre_compact", "url": "https://hooks.example.invalid/", "secret": SECRET}
        assert service.http.post("/v1/hooks", json=hook).status_code == 201
        secret = service.http.post("/v1/webhooks", json={"url": "https://x.example.invalid/"}).json()["secret"]
        job = told(service, "secret")
        assert job["status"] == ("failed" if fails else "succeeded"), job
        assert job["instructions"] == canary("instructions")
        if not fails:
            assert canary("summary") in json.dumps(service.result(job["id"])["messages"])
        assert service.view("secret", "full")[0]["content"] == canary("message")
        inline = {"model": "claude-haiku-4-5", "system": canary("system"), "instructions": canary("instructions")}
        brought = service.http.post("/v1/compactions", json=inline | {"messages": talk()})
        assert service.wait(brought.json()["id"])["status"] == job["status"]
    values = list(rows_of(database_url))
    hidden = [canary(place) for place in PLACES] + [secret, SECRET, *(item.split("_")[1] for item in (secret, SECRET))]
    for place, value in values:
        data = value if isinstance(value, bytes) else value.encode()
        assert not [word for word in hidden if word.encode() in data], place
        if isinstance(value, bytes) and place not in HASHES:
            assert value[:1] == b"\x02", f"{place} is not encrypted"
    assert {"messages.body", "sessions.parameters", "session_state.body", "jobs.instructions"} <= {
        place for place, _ in values
    }


def test_keys_are_changed_without_losing_a_session(tmp_path: Path, database_url: str, valkey: Valkey) -> None:
    """Plain rows, rows of the first key and rows of the second live side by side, while both keys are known."""
    with running(tmp_path / "0", database_url, valkey, "") as service:
        plain = told(service, "plain")
    with running(tmp_path / "1", database_url, valkey, FIRST) as service:
        first = told(service, "first")
    with running(tmp_path / "2", database_url, valkey, f"{SECOND},{FIRST}") as service:
        second = told(service, "second")
        for name, job in (("plain", plain), ("first", first), ("second", second)):
            assert service.view(name, "full")[0]["content"] == canary("message"), name
            assert service.result(job["id"])["strategy"] == "fresh"
            assert service.job(job["id"])["instructions"] == canary("instructions")
            assert service.http.get(f"/v1/sessions/{name}/state/files/notes").json() == {"content": canary("file")}
            assert service.append(name, history(20)).status_code == 200
            assert service.compact(name)["was_compacted"] is True, name
