"""The client's calls against the running service, with and without await."""

from __future__ import annotations

import json

import pytest

from compaction.client import Client, Refused, Stale, sync
from tests.integration.service import KEY, Service, history

pytestmark = pytest.mark.anyio


async def test_a_session_is_compacted_and_taken_over(service: Service, client: Client) -> None:
    held = history(20)
    await client.put_session("taken", model="claude-haiku-4-5", system="You are careful.")
    await client.append("taken", held)
    job = await client.compact_and_wait("taken", trigger="manual", instructions="Keep names.", timeout_seconds=100)
    assert (job["status"], job["was_compacted"]) == ("succeeded", True)
    later = {"role": "user", "content": "And the tests?"}
    await client.append("taken", [later])
    applied = await client.apply(job["id"], [*held, later])
    assert applied["messages"] == [later]
    assert "And the tests?" in json.dumps(applied["api_messages"][-1])
    with pytest.raises(Stale):
        await client.apply(job["id"], [later])
    with pytest.raises(Stale):
        await client.apply(job["id"], [])


async def test_a_jobs_events_are_told_to_their_end_and_taken_up_again(service: Service, client: Client) -> None:
    service.put_session("followed", history(20))
    job = await client.enqueue("followed")
    told = [one async for one in client.iter_events(job["id"])]
    assert told[-1].type == "end"
    assert told[-1].data["status"] == "succeeded"
    entries = [one for one in told if one.type not in {"job", "end"}]
    assert "tengu_compact" in {one.type for one in entries}
    again = [one async for one in client.iter_events(job["id"], last_event_id=entries[0].id)]
    assert [one.id for one in again] == [one.id for one in entries[1:]] + [told[-1].id]
    assert [one async for one in client.iter_events(job["id"], last_event_id=told[-1].id)] == []


async def test_a_result_comes_in_the_format_that_is_asked_for(service: Service, client: Client) -> None:
    service.put_session("formats", history(20), system="You are careful.")
    job = await client.compact_and_wait("formats", trigger="manual", timeout_seconds=100)
    whole = await client.result(job["id"])
    request = await client.result(job["id"], format="anthropic")
    assert request["messages"] == whole["api_messages"]
    assert (request["model"], request["system"], "tools" in request) == ("claude-haiku-4-5", "You are careful.", False)
    chat = await client.result(job["id"], format="openai")
    assert chat["messages"][0] == {"role": "system", "content": "You are careful."}
    assert await client.messages("formats", format="openai") == chat["messages"]
    rows = [json.loads(line) for line in (await client.result(job["id"], format="claude_code")).splitlines()]
    assert [row["message"]["content"] for row in rows[1:]] == [one["content"] for one in whole["messages"][1:]]


async def test_one_key_of_idempotency_makes_one_job(service: Service, client: Client) -> None:
    service.put_session("once", history(3))
    first = await client.enqueue("once", idempotency_key="nightly-1")
    await client.wait(first["id"], timeout_seconds=100)
    assert (await client.enqueue("once", idempotency_key="nightly-1"))["id"] == first["id"]


async def test_messages_are_compacted_without_a_session(service: Service, client: Client) -> None:
    held = history(20)
    job = await client.compact_inline(held, model="claude-haiku-4-5", system="You are careful.", timeout_seconds=100)
    assert (job["status"], job["session_id"], job["was_compacted"]) == ("succeeded", None, True)
    result = await client.result(job["id"])
    assert len(result["api_messages"]) < len(held)
    with pytest.raises(Refused) as refused:
        await client.apply(job["id"], held)
    assert refused.value.code == "conflict"
    first, again = [
        await client.enqueue_inline(held, model="claude-haiku-4-5", idempotency_key="inline-nightly") for _ in range(2)
    ]
    assert first["id"] == again["id"]


async def test_a_service_tells_how_it_does(client: Client) -> None:
    readiness = await client.readiness()
    assert set(readiness["parts"]) == {"database", "migrations", "redis", "workers", "providers", "clock"}
    assert abs(await client.clock_ahead_seconds()) < 60  # one machine, one clock


def test_without_await_it_is_the_same(service: Service) -> None:
    with sync.Client(str(service.http.base_url), KEY) as client:
        client.put_session("plain", model="claude-haiku-4-5")
        client.append("plain", history(20))
        job = client.compact_and_wait("plain", timeout_seconds=100)
        assert [one.type for one in client.iter_events(job["id"])][-1] == "end"
        assert client.result(job["id"])["post_tokens"] < client.result(job["id"])["pre_tokens"]
        inline = client.compact_inline(history(20), model="claude-haiku-4-5", timeout_seconds=100)
        assert client.result(inline["id"])["session_id"] is None
        assert client.result(job["id"], format="claude_code").count(b"\n") == len(client.result(job["id"])["messages"])
        kept = client.history("plain-loop", model="claude-haiku-4-5")
        messages = kept.keep([{"role": "user", "content": "Hello."}])
        assert messages == [{"role": "user", "content": "Hello."}]
        assert service.view("plain-loop", "api") == messages


@pytest.mark.parametrize("name", [".", "..", "a:b_c-d."])
async def test_every_name_that_a_session_may_have_reaches_it(client: Client, name: str) -> None:
    await client.put_session(name, model="claude-haiku-4-5")
    await client.append(name, [{"role": "user", "content": "Hello."}])
    assert (await client.session(name))["id"] == name
    assert len(await client.messages(name, "full")) == 1
