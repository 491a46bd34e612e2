"""Faults of the provider and moments of a session, in scripts of our own: what must hold without the shared cases too.

One session of ten rounds each; times are virtual, as in `play`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.cases.observe import outcome
from tests.cases.play import Play
from tests.integration.service import Service, history
from tests.unit.core.rules import broken_rules

GOOD = {"good_summary": {"include": "GOOD-1"}}
NEXT = {"role": "user", "content": "Next question."}
CALL = {"type": "tool_use", "id": "toolu_open", "name": "Deploy", "input": {}}


def refused(message: str, status: int = 400, kind: str = "invalid_request_error") -> dict[str, Any]:
    """A step: an error as the API words it."""
    return {"status": status, "body": {"type": "error", "error": {"type": kind, "message": message}}}


@dataclass(frozen=True)
class Fault:
    """A script, and what becomes of the job: its outcome and the number of calls."""

    sentence: str
    script: list[Any]
    calls: int
    ends: tuple[str, str | None] = ("succeeded", None)


FAULTS = [
    Fault("a stream that breaks is asked for again", [{"text": "x" * 90, "disconnect_after_chars": 50}, GOOD], 2),
    Fault("a stream that ends early is no summary", [{"text": "x" * 90, "end_after_chars": 50}, GOOD], 2),
    Fault("an empty stream is no summary", [{"empty_stream": True}, GOOD], 2),
    Fault(
        "an error inside a stream counts", [{"sse_error": {"type": "overloaded_error", "message": "later"}}, GOOD], 2
    ),
    Fault("silence ends the call, not the job", [{"delay_s": 1_200}, GOOD], 2),
    Fault(
        "a stream that stops in the middle is left", [{"good_summary": {}, "chunk_delay_s": 500, "chunks": 3}, GOOD], 2
    ),
    Fault("a slow stream is waited for", [{**GOOD, "delay_s": 30, "chunk_delay_s": 20, "chunks": 3}], 1),
    Fault("a page is no message", [{"raw": "<html>Sign in</html>"}], 5, ("failed", "api_error")),
    Fault("a server fault passes", [refused("Internal", 500, "api_error"), refused("later", 503), GOOD], 3),
    Fault("a server fault with status 400 passes", [refused("The server had an error", 400, "server_error"), GOOD], 2),
    Fault("a throttle passes", [{"status": 429, "body": "Too many tokens, please wait"}, GOOD], 2),
    Fault("five attempts are all", [refused("later", 529, "overloaded_error")], 5, ("failed", "overloaded")),
    Fault("a wrong key helps nobody", [refused("invalid x-api-key", 401)], 1, ("failed", "auth_error")),
    Fault("an empty account helps nobody", [refused("credit balance is too low")], 1, ("failed", "billing_error")),
    Fault("an unknown model", [refused("model: gone", 404, "not_found_error")], 1, ("failed", "model_not_found")),
    Fault("three cuts are all", [refused("Prompt is too long")], 4, ("failed", "prompt_too_long")),
    Fault("an overflow inside a stream is cut", [{"sse_error": refused("prompt too long")["body"]["error"]}, GOOD], 2),
    Fault("white space is asked again once", [{"text": " \n"}], 2, ("failed", "no_summary")),
    Fault("a half summary is asked again once", [{"text": "<summary>\n1.", "stop_reason": "max_tokens"}, GOOD], 2),
    Fault("a refusal stands", [{"text": "", "stop_reason": "refusal"}], 1, ("failed", "refusal")),
    Fault("the model that goes on with the task", [{"text": "Next: make deploy"}], 2, ("failed", "no_summary")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.sentence)
def test_a_fault_of_the_provider_ends_as_it_should(service: Service, fault: Fault) -> None:
    given = history(10, characters=800)
    play = Play(service, {"messages": given, "provider_script": fault.script, "session": MODEL}, name(fault.sentence))
    play.run()
    assert (outcome(play.last_job), len(service.calls)) == (fault.ends, fault.calls)
    after = service.view(play.session, "api")
    assert broken_rules([*after, NEXT]) == []
    assert ("GOOD-1" in str(after)) is (play.last_job["status"] == "succeeded")
    assert contents(service.view(play.session, "full")) == contents(given)


def test_what_arrives_while_the_model_writes_follows_the_summary(service: Service) -> None:
    play = played(service, events=[{"when": "call:1", "append": [{"role": "user", "content": "One more: LATE-1"}]}])
    assert "LATE-1" in str(service.view(play.session, "api"))
    assert len(service.calls) == 1


def test_a_second_request_during_the_first_makes_no_second_summary(service: Service) -> None:
    play = played(service, events=[{"when": "call:1", "enqueue": "manual"}])
    assert [job["status"] for job in play.jobs] == ["succeeded", "succeeded"]
    assert play.last_job["reason"] == "nothing_to_compact"
    assert len(service.calls) == 1


def test_the_second_compaction_gets_the_first_summary_and_all_that_came_between(service: Service) -> None:
    later = {"when": "job:1", "append": history(8, characters=900), "enqueue": "manual"}
    during = {"when": "call:1", "append": [{"role": "user", "content": "Between: LATE-2"}]}
    script = [{"good_summary": {"include": "FIRST-1"}}, {"good_summary": {"include": "SECOND-2"}}]
    play = played(service, events=[during, later], provider_script=script)
    second = str(service.calls[1].json())
    assert all(needle in second for needle in ("FIRST-1", "LATE-2", "Reading part 8"))
    after = str(service.view(play.session, "api"))
    assert "SECOND-2" in after
    assert "FIRST-1" not in after


def test_a_cancelled_job_changes_nothing_and_counts_nothing(service: Service) -> None:
    play = played(service, events=[{"when": "call:1", "cancel": True}], before={"breaker_failures": 2})
    assert outcome(play.last_job) == ("failed", "cancelled")
    assert contents(service.view(play.session, "api")) == contents(play.case["messages"])
    assert service.http.get(f"/v1/sessions/{play.session}/breaker").json()["failures"] == 2


def test_the_result_of_an_open_call_still_fits_after_the_compaction(service: Service) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_open", "content": "approved"}
    answered = {"when": "job:1", "append": [{"role": "user", "content": [result]}]}
    messages = [*history(10, characters=800)[:-1], {"role": "assistant", "content": [CALL]}]
    play = played(service, messages=messages, events=[answered])
    after = service.view(play.session, "api")
    assert broken_rules([*after, NEXT]) == []
    assert "approved" in str(after)


MODEL = {"model": "claude-haiku-4-5"}


def played(service: Service, **case: Any) -> Play:  # noqa: ANN401 - the fields of a case
    """A case of ten rounds, played; its session is named after what is special about it."""
    full = {"messages": history(10, characters=800), "provider_script": [GOOD], "session": MODEL} | case
    play = Play(service, full, name(str(case.get("events"))))
    play.run()
    return play


def name(text: str) -> str:
    """A session id."""
    return "own-" + "".join(letter if letter.isalnum() else "-" for letter in text)[:150]


def contents(messages: list[Any]) -> list[Any]:
    """Roles and contents."""
    return [(message["role"], message["content"]) for message in messages]
