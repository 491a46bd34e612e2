"""Message Batches through the real SDK against the fake: what is sent, told and read back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compaction.core.messages import Message
from compaction.errors import AuthError, ProviderError
from compaction.ports import BatchRequest, SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.claude_batches import ClaudeBatches
from ops.fake_provider import FakeProvider

pytestmark = pytest.mark.anyio
TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"
REFUSED = {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with FakeProvider({"batch_s": 0.0}) as running:
        yield running


@pytest.fixture
async def batches(fake: FakeProvider) -> AsyncIterator[ClaudeBatches]:
    claude = ClaudeSummarizer(api_key="sk-test", base_url=fake.url)
    yield ClaudeBatches(claude)
    await claude.aclose()


def request(batches: ClaudeBatches, name: str, text: str = "Fix the build.") -> BatchRequest:
    asked = SummaryRequest(
        kind="fresh",
        model="claude-haiku-4-5",
        messages=[Message(role="user", content=text)],
        system_prompt="Summarise.",
        user_prompt="Now.",
        max_output_tokens=2_000,
    )
    return BatchRequest(name, batches.body_of(asked))


async def test_a_request_in_a_batch_does_not_stream(batches: ClaudeBatches, fake: FakeProvider) -> None:
    await batches.create([request(batches, "item-1-1")])
    (call,) = [call for call in fake.ledger.calls if call.method == "POST"]
    (sent,) = call.json()["requests"]
    assert sent["custom_id"] == "item-1-1"
    assert sorted(sent["params"]) == ["max_tokens", "messages", "model", "system"]


async def test_answers_come_in_another_order_under_their_names(batches: ClaudeBatches) -> None:
    made = await batches.create([request(batches, f"item-{number}-1") for number in range(3)])
    state = await batches.retrieve(made.id)
    assert (state.has_ended, state.requests, state.counts["succeeded"]) == (True, 3, 3)
    told = [answer async for answer in batches.answers(made.id)]
    assert [answer.custom_id for answer in told] == ["item-2-1", "item-1-1", "item-0-1"]
    document: Any = told[0].document
    assert document["stop_reason"] == "end_turn"
    assert document["usage"]["output_tokens"] > 0


async def test_a_request_that_is_too_long_is_refused_by_itself(batches: ClaudeBatches, fake: FakeProvider) -> None:
    fake.play({"batch_s": 0.0, "steps": [{"status": 400, "body": REFUSED}, {"good_summary": {}}]})
    made = await batches.create([request(batches, "item-1-1"), request(batches, "item-2-1")])
    told = {answer.custom_id: answer async for answer in batches.answers(made.id)}
    assert (told["item-1-1"].kind, told["item-2-1"].kind) == ("errored", "succeeded")
    document: Any = told["item-1-1"].document
    assert document["error"]["message"] == TOO_LONG


async def test_a_batch_that_is_under_way_is_found_again_and_can_be_cancelled(
    batches: ClaudeBatches, fake: FakeProvider
) -> None:
    fake.play({"batch_s": 60.0})
    before = datetime.now(UTC) - timedelta(seconds=1)
    made = await batches.create([request(batches, "item-1-1")])
    assert [state.id for state in await batches.newest(before)] == [made.id]
    assert await batches.newest(datetime.now(UTC) + timedelta(hours=1)) == []
    assert (made.has_ended, made.counts["processing"]) == (False, 1)
    await batches.cancel(made.id)
    assert [answer.kind async for answer in batches.answers(made.id)] == ["canceled"]


async def test_expired_requests_are_told(batches: ClaudeBatches, fake: FakeProvider) -> None:
    fake.play({"batch_s": 0.0, "batch_expires": True})
    made = await batches.create([request(batches, "item-1-1")])
    assert [answer.kind async for answer in batches.answers(made.id)] == ["expired"]


async def test_refusals_are_errors_of_ours_without_the_key(batches: ClaudeBatches, fake: FakeProvider) -> None:
    with pytest.raises(ProviderError) as twice:
        await batches.create([request(batches, "same"), request(batches, "same")])
    assert twice.value.status == 400
    with pytest.raises(ProviderError):
        await batches.retrieve("msgbatch_nobody")
    fake.play({"api_key": "sk-other"})
    with pytest.raises(AuthError) as denied:
        await batches.create([request(batches, "item-1-1")])
    assert "sk-test" not in repr(denied.value)
    assert denied.value.__cause__ is None
