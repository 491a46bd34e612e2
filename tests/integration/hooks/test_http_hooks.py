"""HTTP hooks with a real receiver: what it is told, how it is signed, and what its answers come to."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from standardwebhooks import Webhook

from compaction.core.addresses import AddressRules, Allowance
from compaction.core.hooks import Endpoint, Event
from compaction.core.messages import Message
from compaction.hooks.chain import HookChain, HookSources
from compaction.hooks.guarded import GuardedCaller
from compaction.ports import HookContext
from tests.integration.hooks.receiver import Receiver, answer, receiving

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
CONTEXT = HookContext(
    tenant="ägents",
    session_id="agent-7:2026",
    job_id="0198c0de-0000-7000-8000-000000000001",
    trigger="auto",
    instructions="private words",
    pre_tokens=171_000,
)


def chain(receiver: Receiver, event: Event = "pre_compact", *, seconds: float = 30.0, inner: bool = True) -> HookChain:
    """A chain with one endpoint."""
    caller = GuardedCaller(AddressRules(Allowance(inner=inner), None))
    url = f"http://127.0.0.1:{receiver.port}/hook?token=in-the-url"
    return HookSources((), caller).chain([Endpoint("hook-1", event, url, SECRET, seconds)])


async def problem_of(pieces: Sequence[bytes], **how: Any) -> str | None:  # noqa: ANN401 - of chain and receiving
    """What the note of a hook says that answers so."""
    async with receiving(pieces, silent=how.pop("silent", False)) as receiver:
        answered = await chain(receiver, **how).pre_compact(CONTEXT)
    (note,) = answered.notes
    assert (note.name, note.event, note.ok) == ("http:hook-1", "pre_compact", False)
    assert "in-the-url" not in str(note)
    return note.problem


async def test_a_hook_is_told_ids_and_sizes_in_a_signed_post() -> None:
    async with receiving(answer({"instructions": "Keep the ticket numbers."})) as receiver:
        answered = await chain(receiver).pre_compact(CONTEXT)
    assert answered.instructions == "Keep the ticket numbers."
    (request,) = receiver.received
    assert request.line == "POST /hook?token=in-the-url HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert Webhook(SECRET).verify(request.body, request.headers) == {
        "event": "pre_compact",
        "tenant": "ägents",
        "session_id": "agent-7:2026",
        "job_id": "0198c0de-0000-7000-8000-000000000001",
        "trigger": "auto",
        "pre_tokens": 171_000,
    }


async def test_a_repeated_attempt_asks_under_the_same_id_and_another_job_under_another() -> None:
    async with receiving(answer("")) as receiver:
        for context in (CONTEXT, CONTEXT):
            await chain(receiver).pre_compact(context)
        other = HookContext(
            tenant="t", session_id="s", job_id="another", trigger="auto", instructions=None, pre_tokens=1
        )
        await chain(receiver).pre_compact(other)
    first, again, second = (request.headers["webhook-id"] for request in receiver.received)
    assert first == again != second
    assert first.startswith("msg_")


async def test_a_veto_comes_back_as_one_line() -> None:
    async with receiving(answer({"veto": "legal\nhold"})) as receiver:
        assert (await chain(receiver).pre_compact(CONTEXT)).veto == "legal hold"


async def test_messages_come_back_as_meta_messages() -> None:
    async with receiving(answer({"messages": [{"role": "user", "content": "Today is Monday."}]})) as receiver:
        answered = await chain(receiver, "session_start").session_start(CONTEXT)
    assert answered.messages == (Message(role="user", content="Today is Monday.", is_meta=True),)
    assert receiver.received[0].json["event"] == "session_start"


@pytest.mark.parametrize("pieces", [answer("", status="204 No Content"), answer(" \n"), answer("null"), answer({})])
async def test_a_hook_may_have_nothing_to_say(pieces: Sequence[bytes]) -> None:
    async with receiving(pieces) as receiver:
        answered = await chain(receiver).pre_compact(CONTEXT)
    assert (answered.instructions, answered.veto, answered.notes[0].ok) == (None, None, True)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("500 Oops", "answered with status 500"),
        ("302 Found", "answered with status 302"),
        ("404 Not Found", "answered with status 404"),
    ],
)
async def test_another_status_is_no_answer_not_even_a_veto(status: str, words: str) -> None:
    assert await problem_of(answer({"veto": "no"}, status=status)) == words


@pytest.mark.parametrize("body", ["<html>", '{"veto":', b"\xff\xfe", "[" * 50_000])
async def test_what_is_no_json_is_no_answer(body: str | bytes) -> None:
    assert await problem_of(answer(body)) == "answered with something that is no JSON"


async def test_json_of_another_shape_is_no_answer() -> None:
    assert await problem_of(answer("[]")) == "the answer must be an object"


async def test_a_hook_that_does_not_answer_in_time_is_left() -> None:
    assert await problem_of([], silent=True, seconds=0.2) == "did not answer within 0.2 s"


async def test_a_hook_that_answers_drop_by_drop_is_left_too() -> None:
    begun = [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"]
    assert await problem_of(begun, silent=True, seconds=0.2) == "did not answer within 0.2 s"


async def test_an_answer_that_is_too_large_is_no_answer() -> None:
    assert await problem_of(answer(b" " * 70_000)) == "answered with more than 65,536 bytes"


async def test_a_hook_inside_the_network_is_not_called_unless_allowed() -> None:
    async with receiving(answer({"veto": "no"})) as receiver:
        answered = await chain(receiver, inner=False).pre_compact(CONTEXT)
    assert answered.notes[0].problem == "the host's address is not allowed here (loopback)"
    assert receiver.connections == 0
