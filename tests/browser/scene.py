"""What the pages are shown with: a service on which compactions succeeded, were cut, failed and opened a breaker."""

from __future__ import annotations

from tests.integration.service import Json, Service, history

PROBLEM = "prompt is too long: 213000 tokens > 200000 maximum"
REFUSAL = {"content": [], "stop_reason": "refusal"}
TASK_GOES_ON = {"text": "I will read the next file now."}  # no summary: the model went on with the task
TOO_LONG = {  # the wording of the API, by which the gap is found
    "status": 400,
    "body": {"type": "error", "error": {"type": "invalid_request_error", "message": PROBLEM}},
}
WINDOW = {"context_window": 30_000}  # auto-compact at 15,000: half the window is the least
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title="owned"</script> \u202egnp.exe'


def fail(service: Service, session: str, answer: Json = None, **fields: Json) -> Json:
    """A job of the session that has failed, by a model that gives no summary."""
    service.play([answer or TASK_GOES_ON])
    job = service.compact(session, **fields)
    assert job["status"] == "failed", job
    return job


def open_breaker(service: Service, session: str) -> None:
    """Three failed automatic compactions in a row."""
    for _ in range(3):
        fail(service, session, trigger="auto")


def filled(service: Service) -> dict[str, Json]:
    """Sessions and jobs of every kind; the jobs that pages are looked at with, by name."""
    named: dict[str, Json] = {}
    service.play([TOO_LONG, {"good_summary": {"include": "DECISION-7 stays."}}])
    service.put_session("migration:invoices", history(40))
    named["cut"] = service.compact("migration:invoices", instructions="Keep the decisions about the database.")
    service.play()
    for number, rounds in enumerate((12, 30, 22, 18, 26), 1):
        service.put_session(f"agent-{number}:2026-11-30", history(rounds))
        named["good"] = service.compact(f"agent-{number}:2026-11-30")
    service.put_session("small", history(1))
    named["skipped"] = service.compact("small")
    for number in (1, 2, 3):
        service.put_session(f"review-{number}", history(20))
        named["failed"] = fail(service, f"review-{number}")
    service.put_session("nightly", history(20), settings=WINDOW)
    open_breaker(service, "nightly")
    service.put_session("hostile", [{"role": "user", "content": HOSTILE}, *history(12)])
    service.play([{"good_summary": {"include": HOSTILE}}])
    named["hostile"] = service.compact("hostile")
    service.put_session("legal:contract-7", history(16))
    named["refused"] = fail(service, "legal:contract-7", REFUSAL)
    service.play()
    return named
