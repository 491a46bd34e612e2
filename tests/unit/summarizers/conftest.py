"""Fixtures of the Claude summarizer's tests: a fake API, a request with a canary in it, and a maker of summarizers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from compaction.core.messages import Message
from compaction.ports import SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer
from ops.fake_provider import FakeProvider
from tests.unit.summarizers.stage import KEY, SECRET, MakeSummarizer, plain_body


@pytest.fixture
def asked() -> SummaryRequest:
    """A request whose transcript must show up nowhere."""
    return SummaryRequest(
        kind="fresh",
        model="claude-haiku-4-5",
        messages=[Message(role="user", content=f"do it {SECRET}")],
        system_prompt="sum it up",
        user_prompt="now",
        max_output_tokens=20_000,
    )


@pytest.fixture
async def fake(anyio_backend: str) -> AsyncIterator[FakeProvider]:
    """A fake API that answers with a good summary until it is told otherwise."""
    async with FakeProvider() as serving:
        yield serving


@pytest.fixture
async def make(fake: FakeProvider) -> AsyncIterator[MakeSummarizer]:
    """Makes summarizers against `fake`, and closes them."""
    made: list[ClaudeSummarizer] = []

    def summarizer(**settings: Any) -> ClaudeSummarizer:  # noqa: ANN401 - of ClaudeSummarizer
        defaults: dict[str, Any] = {"api_key": KEY, "base_url": fake.url, "build_body": plain_body}
        made.append(ClaudeSummarizer(**(defaults | settings)))
        return made[-1]

    yield summarizer
    for one in made:
        await one.aclose()
