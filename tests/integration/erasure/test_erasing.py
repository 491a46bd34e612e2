"""Erasing a session leaves nothing of it in any table, touches nothing of others, and says what stands against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from compaction.core.body_keys import parse_body_keys
from compaction.store import bodies
from compaction.store.schema import metadata
from compaction.store.tenants import OPERATOR_TENANT
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import create_database, drop_database
from tests.integration.api.dashboard.visitor import token_in
from tests.integration.erasure.search import places
from tests.integration.service import KEY, Service, history

MARKER = "MARKER-b7f1"  # stands in everything that the session stores, except its name
NAME = "s-named-c20d"  # the one thing that orders and the audit log may keep
BODY_KEYS = "k1:" + "A" * 43 + "="
SLOW = {"delay_s": 30, "good_summary": {}}
NAMELESS = {  # tables whose rows are of no session; a new table is put here, or hangs on sessions, or is erased by hand
    "tenants", "api_keys", "hooks", "webhook_endpoints", "workers", "provider_pauses", "queue_depths",
    "job_tallies", "bulk_batches",
    "bulk_runs", "audit_entries",  # what people ordered and did; a session's name may stand there, nothing of it does
}  # fmt: skip
BY_HAND = {"webhook_deliveries", "idempotency_keys"}


@pytest.fixture(scope="module", params=["", BODY_KEYS], ids=["plain", "sealed"])
def service(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres: Postgres,
    migrated_template: str,
    valkey: Valkey,
) -> Iterator[Service]:
    """A service, once with plain and once with sealed bodies, on a database of its own."""
    name = f"erasing_{'sealed' if request.param else 'plain'}"
    url = create_database(postgres, name, migrated_template)
    bodies.use_keys(parse_body_keys(request.param) if request.param else ())
    settings = {
        "COMPACTD_BODY_KEYS": request.param,
        "COMPACTD_HOOK_ALLOW_PRIVATE": "true",
        "COMPACTD_HOOK_PORTS": "any",
    }
    with Service(tmp_path_factory.mktemp(name), url, valkey.url(), **settings) as running:
        yield running
    bodies.use_keys(())
    drop_database(postgres, name)


def marked(service: Service, name: str, word: str) -> str:
    """A session whose every part holds the word: a finished job, a failed one, state, a breaker, news; the last job."""
    http = service.http
    service.put_session(name, [{**message, "uuid": f"{word}-{place}"} for place, message in enumerate(said(word))],
                        system=word, settings={"note": word}, query_source=word)  # fmt: skip
    http.put(f"/v1/sessions/{name}/state/memory/{word}", json={"content": word})
    key = {"Idempotency-Key": f"{word}-{name}"}
    body = {"session_id": name, "trigger": "manual", "instructions": f"Keep {word}.", "metadata": {"ticket": word}}
    job = http.post("/v1/compactions", json=body, headers=key).json()
    assert service.wait(job["id"])["status"] == "succeeded"
    service.append(name, [{**message, "uuid": f"{word}-later-{n}"} for n, message in enumerate(said(word))])
    again = http.post(f"/v1/compactions/{job['id']}/retry", headers={"Idempotency-Key": f"{word}-again-{name}"}).json()
    service.wait(again["id"])
    batch = {"messages": [{"role": "user", "content": word}]}
    http.post(f"/v1/sessions/{name}/messages", json=batch, headers={"Idempotency-Key": f"{word}-batch-{name}"})
    return str(again["id"])


def ordered(service: Service, name: str) -> None:
    """A bulk run that names the session and compacts it, and a deed of the dashboard's."""
    run = service.http.post("/v1/bulk", json={"selection": {"session_ids": [name]}}).json()
    address = f"/v1/bulk/{run['id']}"
    service.until(lambda: service.http.get(address).json()["done"], "the bulk run did not end")
    assert service.http.get(address).json()["request_counts"]["succeeded"] == 1
    with httpx2.Client(base_url=service.http.base_url, follow_redirects=True) as visitor:
        form = visitor.get("/dashboard/sign-in").text
        home = visitor.post("/dashboard/sign-in", data={"csrf": token_in(form), "key": KEY}).text
        deed = {"csrf": token_in(home), "tenant": OPERATOR_TENANT, "session": name}
        assert visitor.post("/dashboard/breakers/reset", data=deed).status_code == 200


def said(word: str) -> list[dict[str, Any]]:
    """A history that speaks of the word all the time."""
    return json.loads(json.dumps(history(12)).replace("TASK-1001", word).replace("Reading part", f"{word} part"))  # type: ignore[no-any-return]  # JSON


def database(service: Service) -> str:
    """The address as psycopg writes it."""
    return service.database_url.replace("+psycopg", "")


def erase(service: Service, name: str, **query: str) -> httpx2.Response:
    """The answer to the request."""
    return service.http.delete(f"/v1/sessions/{name}", params=query)


def test_nothing_is_left_in_any_column_of_any_table(service: Service) -> None:
    service.play()
    hook = {"url": "http://127.0.0.1:1/nobody", "events": ["compaction.succeeded"]}
    assert service.http.post("/v1/webhooks", json=hook).status_code == 201
    service.play([{"good_summary": {"intent": MARKER}}])
    last = marked(service, NAME, MARKER)
    ordered(service, NAME)
    service.play()
    marked(service, "other", "NEIGHBOUR-55")
    before, others = places(database(service), MARKER, last), places(database(service), "NEIGHBOUR-55")
    assert places(database(service), NAME) >= {"sessions.name", "bulk_runs.selection", "audit_entries.target"}
    assert before >= {
        "sessions.parameters", "sessions.settings", "messages.body", "messages.uuid", "jobs.metadata",
        "jobs.instructions", "results.body", "session_state.body", "session_state.key", "idempotency_keys.key",
        "idempotency_keys.response", "webhook_deliveries.payload", "attempts.job_id", "job_events.job_id",
    }  # fmt: skip

    answer = erase(service, NAME)

    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["jobs"], told["cancelled_jobs"], told["results"], told["kept_answers"]) == (3, 0, 3, 3)
    assert told["messages"] == 2 * len(history(12)) + 1
    assert told["deliveries"] == 3
    assert places(database(service), MARKER, last) == set()
    assert places(database(service), NAME) == {"bulk_runs.selection", "audit_entries.target"}
    assert places(database(service), "NEIGHBOUR-55") == others


def test_afterwards_it_is_not_there_and_its_name_is_free(service: Service) -> None:
    service.play()
    job = marked(service, "once", "ONCE-1")
    assert erase(service, "once").status_code == 200
    for address in ("/v1/sessions/once", f"/v1/compactions/{job}", f"/v1/compactions/{job}/result"):
        assert service.http.get(address).status_code == 404
    assert erase(service, "once").status_code == 404
    service.put_session("once", history(2))
    assert service.http.get("/v1/sessions/once").json()["head_seq"] == len(history(2))


def test_a_session_with_a_running_job_is_refused_and_says_what_to_do(service: Service) -> None:
    service.play([SLOW])
    service.put_session("busy", history(12))
    job = service.enqueue("busy")
    service.until(lambda: service.job(job["id"])["status"] == "running", "the job did not start")

    refused = erase(service, "busy")

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "cancel_jobs=true" in refused.json()["detail"]
    assert service.job(job["id"])["status"] == "running"


def test_a_running_job_is_ended_with_it_and_whoever_waits_is_told(service: Service) -> None:
    service.play([SLOW])
    service.put_session("torn", history(12))
    job = service.enqueue("torn")
    service.until(lambda: service.job(job["id"])["status"] == "running", "the job did not start")
    answers: list[httpx2.Response] = []

    def wait() -> None:
        headers = {"Prefer": "wait=30"}
        answers.append(service.http.get(f"/v1/compactions/{job['id']}", headers=headers))

    waiting = threading.Thread(target=wait)
    waiting.start()
    told = erase(service, "torn", cancel_jobs="true").json()
    waiting.join()

    assert (told["jobs"], told["cancelled_jobs"]) == (1, 1)
    assert [answer.status_code for answer in answers] == [404]
    service.play()
    service.put_session("after", history(12))
    assert service.compact("after")["status"] == "succeeded"  # the worker goes on
    assert places(database(service), "torn", job["id"]) == set()


def test_whoever_writes_at_that_moment_is_refused_or_makes_it_anew(service: Service) -> None:
    """Appends, enqueues and jobs beside erasures: every answer is a proper one, and the last erasure is whole."""
    service.play()
    statuses: set[int] = set()
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            statuses.add(service.http.put("/v1/sessions/contested", json={"model": "claude-haiku-4-5"}).status_code)
            statuses.add(service.append("contested", history(2)).status_code)
            body = {"session_id": "contested", "trigger": "manual"}
            statuses.add(service.http.post("/v1/compactions", json=body).status_code)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(40):
        statuses.add(erase(service, "contested", cancel_jobs="true").status_code)
    over.set()
    for writer in writers:
        writer.join()
    erase(service, "contested", cancel_jobs="true")

    assert {200, 202} <= statuses
    assert statuses <= {200, 201, 202, 404, 409, 503}, statuses
    assert places(database(service), "contested") == set()


def test_it_takes_the_scope_and_another_tenant_has_nothing_to_erase(service: Service) -> None:
    service.put_session("guarded", history(2))
    for scopes, tenant, status in (
        (["read", "sessions:write", "jobs:write"], OPERATOR_TENANT, 403),
        (["ops"], "somebody-else", 404),
        (["ops"], OPERATOR_TENANT, 200),
    ):
        made = service.http.post("/v1/api-keys", json={"tenant": tenant, "scopes": scopes})
        assert made.status_code == 201, made.text
        headers = {"Authorization": f"Bearer {made.json()['key']}"}
        assert service.http.delete("/v1/sessions/guarded", headers=headers).status_code == status


def command(service: Service, *words: str) -> subprocess.CompletedProcess[str]:
    """`compactd session …` without a terminal."""
    environ = {"PATH": os.environ["PATH"], "COMPACTD_URL": str(service.http.base_url), "COMPACTD_API_KEY": KEY}
    program = str(Path(sys.executable).with_name("compactd"))
    return subprocess.run([program, "session", *words], env=environ, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)  # fmt: skip


def test_the_command_erases_only_when_somebody_says_so(service: Service) -> None:
    service.put_session("typed", history(2))
    unsure = command(service, "typed", "--erase")
    assert (unsure.returncode, "--yes" in unsure.stderr) == (2, True)
    assert service.http.get("/v1/sessions/typed").status_code == 200
    done = command(service, "typed", "--erase", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["messages"] == len(history(2))
    assert service.http.get("/v1/sessions/typed").status_code == 404
    assert command(service, "typed", "--erase", "--yes").returncode == 4


def test_every_table_says_how_its_rows_go_with_a_session() -> None:
    """A new table hangs on its session by a foreign key that cascades, is erased by hand, or knows no session."""
    hanging = {"sessions"}
    for table in metadata.sorted_tables:
        for key in table.foreign_keys:
            if key.column.table.name in hanging and key.ondelete == "CASCADE" and not key.parent.nullable:
                hanging.add(table.name)

    assert set(metadata.tables) == hanging | NAMELESS | BY_HAND
