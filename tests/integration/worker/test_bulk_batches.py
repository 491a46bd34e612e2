"""Bulk runs by Message Batches, through the running service and the fake's wire: half the price, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ops.embedded import Valkey
from ops.fake_provider import Call
from tests.integration.service import Service, history

Json = Any
PATH = "/v1/messages/batches"
TOO_LONG = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    environ = {"COMPACTD_BATCH_POLL_SECONDS": "0.3", "COMPACTD_BATCH_GRACE_SECONDS": "2"}
    folder = tmp_path_factory.mktemp("service")
    with Service(folder, module_database_url, valkey.url(), **environ) as running:
        yield running


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play({"batch_s": 0.3})
    service.fake.ledger.clear()


def batches(service: Service) -> list[Call]:
    """The batches that were made."""
    return [call for call in service.fake.ledger.calls if (call.method, call.path) == ("POST", PATH)]


def finished(service: Service, prefix: str, count: int, rounds: int = 4, **wanted: Json) -> Json:
    """The run over so many new sessions, at its end."""
    for number in range(count):
        service.put_session(f"{prefix}-{number}", history(rounds))
    order = {"selection": {"id_prefix": f"{prefix}-"}, "way": "message_batches"} | wanted
    run = service.http.post("/v1/bulk", json=order).json()
    return ended(service, run["id"])


def ended(service: Service, run_id: str) -> Json:
    def look() -> Json:
        run = service.http.get(f"/v1/bulk/{run_id}").json()
        return run if run["done"] else None

    return service.until(look, "the run did not end")


def change(service: Service, sql: str, *values: Json) -> None:
    with psycopg.connect(service.database_url.replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute(sql, values)


def read(service: Service, sql: str, *values: Json) -> list[tuple[Any, ...]]:
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        return conn.execute(sql, values).fetchall()


def test_a_run_goes_by_one_batch_and_its_jobs_call_no_model(service: Service) -> None:
    run = finished(service, "half", 5)
    assert (run["way"], run["way_note"], run["end_reason"]) == ("message_batches", None, "done")
    assert run["request_counts"]["succeeded"] == 5
    assert service.fake.calls == []
    (batch,) = batches(service)
    assert len(batch.json()["requests"]) == 5
    assert "stream" not in batch.json()["requests"][0]["params"]
    lines = service.http.get(f"/v1/bulk/{run['id']}/results").text.splitlines()
    told = [json.loads(line)["result"] for line in lines]
    results = [service.result(one["job_id"]) for one in told]
    assert {result["strategy"] for result in results} == {"fresh"}
    # By hand for claude-haiku-4-5: a dollar and five per million tokens in and out, and half of it.
    for result in results:
        usage = result["usage"]
        dollars = (usage["input_tokens"] * 1 + usage["output_tokens"] * 5) / 1_000_000 / 2
        assert float(result["cost_usd"]) == pytest.approx(dollars, abs=1e-6)
    assert run["cost"]["spent_usd"] == pytest.approx(sum(float(result["cost_usd"]) for result in results), abs=1e-5)


def test_an_identical_run_sends_nothing(service: Service) -> None:
    finished(service, "again", 2)
    run = service.http.post("/v1/bulk", json={"selection": {"id_prefix": "again-"}, "way": "message_batches"}).json()
    assert ended(service, run["id"])["skipped"] == {"unchanged": 2}
    assert len(batches(service)) == 1


def test_a_prompt_that_is_too_long_is_cut_and_goes_into_the_next_batch(service: Service) -> None:
    service.play({"batch_s": 0.3, "steps": [{"status": 400, "body": TOO_LONG}, {"good_summary": {}}]})
    run = finished(service, "long", 1, rounds=12)
    assert run["request_counts"]["succeeded"] == 1
    first, second = batches(service)
    assert second.body_bytes < first.body_bytes
    (line,) = service.http.get(f"/v1/bulk/{run['id']}/results").text.splitlines()
    result = service.result(json.loads(line)["result"]["job_id"])
    assert result["ptl_attempts"] == 1
    assert result["dropped"]["rounds"] > 0


def test_a_prompt_that_stays_too_long_is_cut_three_times_and_fails(service: Service) -> None:
    """One request and three retries (the rule of the live way), then it is over and asked for no more."""
    service.play({"batch_s": 0.1, "steps": [{"status": 400, "body": TOO_LONG}]})
    run = finished(service, "endless", 1, rounds=30)
    assert run["failed"] == {"prompt_too_long": 1}
    assert len(batches(service)) == 4


def test_requests_that_expire_are_sent_again_and_given_up_in_the_end(service: Service) -> None:
    service.play({"batch_s": 0.1, "batch_expires": True})
    run = finished(service, "late", 1)
    assert run["request_counts"]["expired"] == 1
    assert len(batches(service)) == 3
    assert run["cost"]["spent_usd"] == 0


def test_a_cancelled_run_cancels_its_batch(service: Service) -> None:
    service.play({"batch_s": 60.0})
    service.put_session("halt-0", history(4))
    order = {"selection": {"id_prefix": "halt-"}, "way": "message_batches"}
    run = service.http.post("/v1/bulk", json=order).json()
    service.until(lambda: batches(service), "no batch was made")
    service.http.post(f"/v1/bulk/{run['id']}/cancel")
    done = ended(service, run["id"])
    assert (done["end_reason"], done["request_counts"]["canceled"]) == ("cancelled", 1)


def test_a_batch_whose_id_was_lost_in_a_crash_is_found_and_not_sent_again(service: Service) -> None:
    """The row says what was about to be sent; the provider has it, and nobody wrote its id down."""
    service.play({"batch_s": 2.0})
    for number in range(3):
        service.put_session(f"lost-{number}", history(4))
    order = {"selection": {"id_prefix": "lost-"}, "way": "message_batches"}
    run = service.http.post("/v1/bulk", json=order).json()
    service.until(lambda: batches(service), "no batch was made")
    service.until(lambda: "bulk.batch_sent" in service.log("worker"), "it was not written down")
    service.kill_workers()
    forget = "UPDATE bulk_batches SET state = 'intended', provider_id = NULL, sent_at = NULL WHERE run_id = %s"
    change(service, forget, run["id"])
    service.start_worker()
    done = ended(service, run["id"])
    assert done["request_counts"]["succeeded"] == 3
    assert len(batches(service)) == 1
    assert "bulk.batch_found" in service.log("worker")


def test_a_batch_that_was_never_sent_is_sent_after_a_while(service: Service) -> None:
    """The worker died between the row and the call: after the grace period the items go into another batch."""
    service.play({"batch_s": 0.1, "api_key": "somebody-else's"})
    service.put_session("unsent-0", history(4))
    service.kill_workers()
    order = {"selection": {"id_prefix": "unsent-"}, "way": "message_batches", "dry_run": True}
    run = service.http.post("/v1/bulk", json=order).json()
    service.play({"batch_s": 0.1})
    service.start_worker()
    service.until(lambda: service.http.get(f"/v1/bulk/{run['id']}").json()["state"] == "ready", "no plan")
    service.kill_workers()
    intend = (
        "WITH made AS (INSERT INTO bulk_batches (tenant_id, run_id, requests)"
        " SELECT tenant_id, id, 1 FROM bulk_runs WHERE id = %s RETURNING id)"
        " UPDATE bulk_items SET state = 'batched', feeds = 1, batch_id = made.id FROM made WHERE run_id = %s"
    )
    change(service, intend, run["id"], run["id"])
    service.http.post(f"/v1/bulk/{run['id']}/resume")
    service.start_worker()
    assert ended(service, run["id"])["request_counts"]["succeeded"] == 1
    assert "bulk.batch_never_sent" in service.log("worker")


def started(service: Service, prefix: str, rounds: int = 4) -> str:
    """A run over one new session whose batch is with the provider, and written down."""
    service.put_session(f"{prefix}-0", history(rounds))
    order = {"selection": {"id_prefix": f"{prefix}-"}, "way": "message_batches"}
    run_id: str = service.http.post("/v1/bulk", json=order).json()["id"]
    sent = "SELECT 1 FROM bulk_batches WHERE run_id = %s AND state = 'sent'"
    service.until(lambda: read(service, sent, run_id), "it was not written down")
    return run_id


def test_an_item_that_needs_no_further_request_ends(service: Service) -> None:
    """The breaker opened while the batch was under way: the pipeline asks for nothing more, and the job says why."""
    service.play({"batch_s": 2.0, "steps": [{"status": 400, "body": TOO_LONG}, {"good_summary": {}}]})
    run_id = started(service, "needless", rounds=12)
    opened = (
        "INSERT INTO breakers (session_id, failures, opened_at)"
        " SELECT session_id, 3, now() FROM bulk_items WHERE run_id = %s"
    )
    change(service, opened, run_id)
    assert ended(service, run_id)["skipped"] == {"circuit_open": 1}
    assert len(batches(service)) == 1


def test_a_run_whose_worker_has_no_batches_any_more_goes_live_and_says_so(service: Service) -> None:
    """Planned with a key and carried out without: nothing is with the provider, so nothing has to be waited for."""
    service.put_session("keyless-0", history(4))
    order = {"selection": {"id_prefix": "keyless-"}, "way": "message_batches", "dry_run": True}
    run_id = service.http.post("/v1/bulk", json=order).json()["id"]
    service.until(lambda: service.http.get(f"/v1/bulk/{run_id}").json()["state"] == "ready", "no plan")
    service.kill_workers()
    service.start_worker(COMPACTD_SUMMARIZER="extractive")
    service.http.post(f"/v1/bulk/{run_id}/resume")
    run = ended(service, run_id)
    service.kill_workers()
    service.start_worker()
    assert (run["way"], run["end_reason"], run["request_counts"]["succeeded"]) == ("live", "done", 1)
    assert "no batches any more" in run["way_note"]
    assert batches(service) == []


def forget(service: Service, *run_ids: str) -> None:
    """The worker dies before it has written down the ids of these runs' batches; another one comes."""
    service.kill_workers()
    lost = "UPDATE bulk_batches SET state = 'intended', provider_id = NULL, sent_at = NULL WHERE run_id = %s"
    for run_id in run_ids:
        change(service, lost, run_id)
    service.start_worker()


def test_two_lost_batches_of_one_size_come_to_their_own_runs(service: Service) -> None:
    """The provider lists the newest first, so that each run takes the other's; the names in the answers tell."""
    service.play({"batch_s": 3.0})
    run_ids = [started(service, prefix) for prefix in ("swap-a", "swap-b")]
    forget(service, *run_ids)
    for run_id in run_ids:
        assert ended(service, run_id)["request_counts"]["succeeded"] == 1
    assert len(batches(service)) == 2


def test_a_cancelled_run_leaves_a_batch_alone_that_may_be_a_strangers(service: Service) -> None:
    service.play({"batch_s": 4.0})
    run_id = started(service, "maybe")
    forget(service, run_id)
    adopted = "SELECT 1 FROM bulk_batches WHERE run_id = %s AND adopted"
    service.until(lambda: read(service, adopted, run_id), "it was not found")
    service.http.post(f"/v1/bulk/{run_id}/cancel")
    assert ended(service, run_id)["end_reason"] == "cancelled"
    assert [call.path for call in service.fake.ledger.calls if call.path.endswith("/cancel")] == []
