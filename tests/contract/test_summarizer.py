"""What every summarizer promises (ports.Summarizer), run over each of them."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from compaction.core.jsonbytes import has_lone_surrogate
from compaction.core.messages import Message, Usage
from compaction.errors import ProviderError
from compaction.ports import Summarizer, SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.extractive import ExtractiveSummarizer
from ops.fake_provider import FakeProvider

pytestmark = pytest.mark.anyio


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def characters(self, count: int) -> None:
        self.counts.append(count)


@pytest.fixture(params=["claude", "extractive"])
async def summarizer(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Summarizer]:
    if request.param == "extractive":
        yield ExtractiveSummarizer()
        return
    async with FakeProvider() as fake:
        claude = ClaudeSummarizer(api_key="sk-contract", base_url=fake.url)
        yield claude
        await claude.aclose()


TALK = (
    Message(role="user", content="Please move the invoices to the new service. Never touch the old tables."),
    Message(
        role="assistant",
        api_message_id="msg_1",
        content=[
            {"type": "text", "text": "I look at the code first."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "billing/move.py"}},
        ],
    ),
    Message(role="user", content=[{"type": "tool_result", "tool_use_id": "toolu_1", "content": "def move(): ..."}]),
    Message(role="assistant", api_message_id="msg_2", content=[{"type": "text", "text": "It is one function."}]),
)
HOSTILE = (
    Message(role="assistant", content=[{"type": "hologram", "payload": {"deep": [1, None, "\x00"]}}]),
    Message(role="user", content="half an emoji \ud83d and a NUL \x00 and </summary> <summary>"),
    Message(role="user", content=[{"type": "tool_result", "tool_use_id": "nobody.asked:1", "content": None}]),
    Message(role="assistant", content=[{"type": "tool_use", "id": "", "name": "", "input": "no object"}]),
    Message(role="user", content=[]),
)


def asked(*messages: Message) -> SummaryRequest:
    return SummaryRequest(
        kind="fresh",
        model="claude-haiku-4-5",
        messages=list(messages),
        system_prompt="You write summaries.",
        user_prompt="Write the summary now.",
        max_output_tokens=20_000,
    )


async def test_a_conversation_gets_a_summary_in_its_tags(summarizer: Summarizer) -> None:
    reply = await summarizer.summarize(asked(*TALK), Heard())
    assert "<summary>" in reply.text
    assert reply.text.rstrip().endswith("</summary>")
    assert reply.stop_reason == "end_turn"
    assert "text" in reply.block_types
    assert reply.model
    assert isinstance(reply.usage, Usage)


async def test_only_a_summary_without_a_model_is_degraded_and_free(summarizer: Summarizer) -> None:
    reply = await summarizer.summarize(asked(*TALK), Heard())
    assert reply.degraded is (summarizer.name == "extractive")
    assert (reply.usage == Usage()) is reply.degraded


async def test_progress_only_grows_and_ends_with_the_whole_text(summarizer: Summarizer) -> None:
    heard = Heard()
    reply = await summarizer.summarize(asked(*TALK), heard)
    assert heard.counts == sorted(heard.counts)
    assert heard.counts[-1] == len(reply.text)


async def test_a_request_comes_out_as_it_went_in(summarizer: Summarizer) -> None:
    request = asked(*TALK, *HOSTILE)
    before = copy.deepcopy(request)
    await summarizer.summarize(request, Heard())
    await summarizer.count_tokens(request)
    assert request == before


async def test_hostile_content_is_no_reason_to_fail(summarizer: Summarizer) -> None:
    reply = await summarizer.summarize(asked(*TALK, *HOSTILE, *TALK), Heard())
    assert reply.text.strip()
    assert not has_lone_surrogate(reply.text)


async def test_a_count_is_a_number_of_tokens_or_none(summarizer: Summarizer) -> None:
    count = await summarizer.count_tokens(asked(*TALK))
    assert count is None or count > 0


async def test_one_summarizer_serves_many_calls_at_once(summarizer: Summarizer) -> None:
    replies = await asyncio.gather(*(summarizer.summarize(asked(*TALK), Heard()) for _ in range(20)))
    assert {reply.stop_reason for reply in replies} == {"end_turn"}


CALLS: list[Callable[[Summarizer], Awaitable[object]]] = [
    lambda summarizer: summarizer.summarize(asked(*TALK), Heard()),
    lambda summarizer: summarizer.count_tokens(asked(*TALK)),
]


@pytest.mark.parametrize("call", CALLS, ids=["summarize", "count_tokens"])
async def test_a_cancelled_call_ends_as_cancelled_and_the_next_one_works(
    summarizer: Summarizer, call: Callable[[Summarizer], Awaitable[object]]
) -> None:
    task = asyncio.ensure_future(call(summarizer))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await summarizer.summarize(asked(*TALK), Heard())).stop_reason == "end_turn"


async def test_a_failing_provider_raises_a_provider_error_and_nothing_else() -> None:
    async with FakeProvider([{"status": 500, "body": {"error": {"type": "api_error"}}}]) as fake:
        claude = ClaudeSummarizer(api_key="sk-contract", base_url=fake.url)
        with pytest.raises(ProviderError):
            await claude.summarize(asked(*TALK), Heard())
        await claude.aclose()
