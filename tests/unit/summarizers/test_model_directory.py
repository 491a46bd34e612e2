"""The memory over the Models API."""

from __future__ import annotations

import asyncio

import pytest

from compaction.summarizers.model_directory import KNOWN_SECONDS, MAX_MODELS, UNKNOWN_SECONDS, ModelDirectory
from compaction.summarizers.models import ModelLimits

pytestmark = pytest.mark.anyio
LIMITS = ModelLimits(200_000, 64_000, source="api")


class Api:
    """Counts the questions; knows one model."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = 0.0
        self.directory = ModelDirectory(self.ask, lambda: self.now)

    async def ask(self, model: str) -> ModelLimits | None:
        self.asked.append(model)
        return LIMITS if model == "known" else None


async def test_a_model_is_asked_for_once_an_hour() -> None:
    api = Api()
    assert [await api.directory.limits("known") for _ in range(3)] == [LIMITS] * 3
    api.now = KNOWN_SECONDS
    await api.directory.limits("known")
    assert api.asked == ["known", "known"]


async def test_no_answer_is_remembered_for_a_minute() -> None:
    api = Api()
    assert await api.directory.limits("other") is None
    api.now = UNKNOWN_SECONDS - 1
    await api.directory.limits("other")
    assert len(api.asked) == 1
    api.now = UNKNOWN_SECONDS
    await api.directory.limits("other")
    assert len(api.asked) == 2


async def test_the_oldest_name_goes_when_there_are_too_many() -> None:
    api = Api()
    for number in range(MAX_MODELS + 1):
        await api.directory.limits(f"model-{number}")
    await api.directory.limits("model-1")
    assert len(api.asked) == MAX_MODELS + 1
    await api.directory.limits("model-0")
    assert len(api.asked) == MAX_MODELS + 2


async def test_all_who_start_at_once_ask_once_and_one_who_is_cancelled_disturbs_nobody() -> None:
    api = Api()
    waiting = [asyncio.create_task(api.directory.limits("known")) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(told[0], asyncio.CancelledError)
    assert told[1:] == [LIMITS] * 19
    assert api.asked == ["known"]
