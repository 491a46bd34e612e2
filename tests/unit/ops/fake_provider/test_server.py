"""The fake as the official SDK sees it: the SDK's own typed stream must be content with every reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from ops.fake_provider import FakeProvider, FakeProviderThread

pytestmark = pytest.mark.anyio
MODEL = "claude-haiku-4-5"
ASK: Any = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "x" * 400}]}


@pytest.fixture
async def fake(anyio_backend: str) -> AsyncIterator[FakeProvider]:
    async with FakeProvider() as serving:
        yield serving


@pytest.fixture
async def sdk(fake: FakeProvider) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(api_key="k", base_url=fake.url, max_retries=0) as client:
        yield client


async def test_a_streamed_message_has_all_its_events_in_order(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}
    content = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "look"}, call]
    fake.play([{"content": content, "stop_reason": "tool_use", "chunks": 2}])
    async with sdk.messages.stream(**ASK) as stream:
        kinds = [event.type async for event in stream if event.type in RAW]
        message = await stream.get_final_message()
    short = [kind.removeprefix("content_block_").removeprefix("message_") for kind in kinds]
    blocks = ["start delta delta stop"] * 2 + ["start delta stop"]  # the signature is a delta, the tool call one piece
    assert " ".join(short) == " ".join(["start", *blocks, "delta", "stop"])
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].input == {"path": "a"}  # type: ignore[union-attr]  # the third block is the tool call
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens == 101  # 400 characters of content and four of the role
    assert message.usage.output_tokens >= 1
    assert stream.request_id == "req_fake00000001"


RAW = {
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
}


async def test_the_same_message_without_streaming(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    fake.play([{"text": "", "stop_reason": "refusal", "stop_details": details}])
    message = await sdk.messages.create(**ASK)
    assert (message.content, message.stop_reason) == ([], "refusal")
    assert message.stop_details is not None
    assert message.stop_details.category == "cyber"


async def test_steps_go_in_order_and_the_last_repeats(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    fake.play([{"text": "one"}, {"text": "two"}])
    texts = [(await sdk.messages.create(**ASK)).content[0] for _ in range(3)]
    assert [block.text for block in texts if block.type == "text"] == ["one", "two", "two"]


async def test_an_error_step_is_the_sdks_error(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    fake.play([{"status": 529, "body": body, "headers": {"retry-after": "3"}}])
    with pytest.raises(anthropic.APIStatusError) as caught:
        await sdk.messages.create(**ASK)
    assert (caught.value.status_code, caught.value.type, caught.value.api_message) == (
        529,
        "overloaded_error",
        "Overloaded",
    )
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(("stream", "status"), [(True, 200), (False, 529)])
async def test_an_error_event_has_the_status_of_its_type_without_streaming(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic, stream: bool, status: int
) -> None:
    fake.play([{"sse_error": {"type": "overloaded_error", "message": "x"}, "after_text": "half"}])
    with pytest.raises(anthropic.APIStatusError) as caught:
        await _drained(await sdk.messages.create(**ASK, stream=stream))
    assert caught.value.status_code == status


async def _drained(reply: Any) -> str:  # noqa: ANN401 - a stream or a message
    """The text that came before the stream ended."""
    if isinstance(reply, anthropic.types.Message):
        return ""
    events = [event async for event in reply]
    return "".join(event.delta.text for event in events if event.type == "content_block_delta")


async def test_a_cut_stream_breaks_and_an_ended_one_just_ends(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic
) -> None:
    fake.play([{"text": "0123456789", "disconnect_after_chars": 4}, {"text": "0123456789", "end_after_chars": 4}])
    with pytest.raises(httpx2.RemoteProtocolError):
        await _drained(await sdk.messages.create(**ASK, stream=True))
    assert await _drained(await sdk.messages.create(**ASK, stream=True)) == "0123"


async def test_raw_replies_and_empty_streams(fake: FakeProvider) -> None:
    fake.play([{"raw": "<html>", "content_type": "text/html"}, {"empty_stream": True}])
    async with httpx2.AsyncClient(base_url=fake.url) as http:
        raw = await http.post("/v1/messages", json=ASK)
        empty = await http.post("/v1/messages", json=ASK)
    assert (raw.text, raw.headers["content-type"]) == ("<html>", "text/html")
    assert (empty.content, empty.headers["content-type"]) == (b"", "text/event-stream; charset=utf-8")


REFUSE: Any = {"status": 400, "body": {"error": {"message": "{measured} of {max_tokens}"}}}
LIMITS = [  # limit, its max just under what ASK measures, what the reply calls measured
    ("input_tokens", 100, 101),
    ("input_plus_output", 200, 101),
    ("max_tokens", 99, 100),
    ("part_chars", 399, 400),
    ("body_bytes", 400, None),
]


@pytest.mark.parametrize(("limit", "below", "measured"), LIMITS)
async def test_a_limit_refuses_what_is_over_it_and_uses_up_no_step(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic, limit: str, below: int, measured: int | None
) -> None:
    fake.play({"limits": [{"limit": limit, "max": below, "reply": REFUSE}], "steps": [{"text": "one"}]})
    with pytest.raises(anthropic.BadRequestError) as caught:
        await sdk.messages.create(**ASK)
    assert caught.value.api_message == f"{measured or fake.calls[0].body_bytes} of 100"
    fake.play({"limits": [{"limit": limit, "max": below + 10_000, "reply": REFUSE}], "steps": [{"text": "one"}]})
    assert (await sdk.messages.create(**ASK)).stop_reason == "end_turn"


async def test_forbidden_blocks_are_found_inside_results(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    fake.play({"limits": [{"limit": "forbid_blocks", "types": ["image"], "reply": REFUSE}]})
    image = {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    with pytest.raises(anthropic.BadRequestError):
        await sdk.messages.create(**ASK | {"messages": [{"role": "user", "content": [result]}]})


async def test_a_prompt_over_the_window_is_refused_in_the_apis_words(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic
) -> None:
    fake.play({"refuse_over_window": True, "windows": {MODEL: 100}})
    with pytest.raises(anthropic.BadRequestError) as caught:
        await sdk.messages.create(**ASK)
    assert caught.value.api_message == "prompt is too long: 101 tokens > 100 maximum"


async def test_tokens_are_counted_and_no_output_may_be_asked_for(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic
) -> None:
    counted = await sdk.messages.count_tokens(model=MODEL, messages=ASK["messages"])
    assert counted.input_tokens == 101
    with pytest.raises(anthropic.BadRequestError):
        await sdk.messages.count_tokens(model=MODEL, messages=ASK["messages"], extra_body={"max_tokens": 5})
    assert fake.calls == []


async def test_models_are_listed_and_described(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    fake.play({"windows": {"my-model": 65_536}})
    assert MODEL in [model.id async for model in sdk.models.list()]
    assert (await sdk.models.retrieve("my-model")).max_input_tokens == 65_536
    assert (await sdk.models.retrieve(MODEL)).max_tokens == 64_000
    with pytest.raises(anthropic.NotFoundError):
        await sdk.models.retrieve("nobody-knows-it")


async def test_a_request_without_what_the_api_needs_is_refused(fake: FakeProvider) -> None:
    async with httpx2.AsyncClient(base_url=fake.url) as http:
        statuses = [
            (await http.post("/v1/messages", content=body)).status_code
            for body in (b"{half", b"{}", b'{"max_tokens": 5, "messages": []}', b'{"messages": [{}]}')
        ]
        missing = await http.get("/v1/nothing")
    assert statuses == [400] * 4
    assert missing.status_code == 404


async def test_time_runs_as_fast_as_the_script_says(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    """An hour before the reply and an hour between its chunks, ten million times faster."""
    step = {"text": "abc", "delay_s": 3_600, "chunk_delay_s": 3_600, "chunks": 3}
    fake.play({"steps": [step], "time_divider": 10_000_000})
    assert await _drained(await sdk.messages.create(**ASK, stream=True)) == "abc"


async def test_the_ledger_knows_each_request_and_never_the_key(
    fake: FakeProvider, sdk: anthropic.AsyncAnthropic
) -> None:
    await sdk.messages.create(**ASK, metadata={"user_id": "job-7"}, extra_headers={"x-job": "7", "x-api-key": "k"})
    line = fake.calls[0].as_line()
    assert (line["model"], line["stream"], line["metadata"], line["answer"]) == (
        MODEL,
        False,
        {"user_id": "job-7"},
        "step 1",
    )
    assert line["headers"]["x-job"] == "7"
    assert not {"authorization", "x-api-key"} & set(line["headers"])
    assert fake.calls[0].json()["max_tokens"] == 100
    assert line["outcome"] == "sent"


async def test_the_ledgers_file_holds_a_line_when_a_call_is_answered_and_when_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    async with FakeProvider(ledger=path) as fake, httpx2.AsyncClient(base_url=fake.url) as http:
        await http.post("/v1/messages", json=ASK)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["call", "end"]
    assert lines[0]["sha256"] == fake.calls[0].sha256
    assert lines[1]["outcome"] == "sent"


async def test_tests_may_look_in_and_change_the_script_from_outside(fake: FakeProvider) -> None:
    async with httpx2.AsyncClient(base_url=fake.url) as http:
        await http.post("/v1/messages", json=ASK)
        assert [call["path"] for call in (await http.get("/__calls")).json()["calls"]] == ["/v1/messages"]
        assert (await http.post("/__script", json=[{"status": 402, "body": ""}])).status_code == 200
        assert (await http.post("/v1/messages", json=ASK)).status_code == 402
        assert (await http.post("/__script", json=[{"nonsense": 1}])).status_code == 400
        assert (await http.delete("/__calls")).json() == {"calls": []}


def test_it_serves_in_a_thread_of_its_own() -> None:
    with FakeProviderThread([{"text": "from a thread"}]) as fake, httpx2.Client(base_url=fake.url) as http:
        assert http.post("/v1/messages", json=ASK).json()["content"][0]["text"] == "from a thread"


async def test_a_held_call_stays_open_until_it_is_released(fake: FakeProvider, sdk: anthropic.AsyncAnthropic) -> None:
    """The second call of the script waits; the first and the third do not."""
    fake.play({"hold_calls": [2]})
    await sdk.messages.create(**ASK)
    asked = asyncio.create_task(sdk.messages.create(**ASK))
    while len(fake.calls) < 2:  # noqa: ASYNC110 - the fake tells nobody when a call comes in
        await asyncio.sleep(0.01)
    await sdk.messages.create(**ASK)
    assert (fake.calls[1].outcome, asked.done()) == ("open", False)
    fake.release()
    assert (await asked).stop_reason == "end_turn"
