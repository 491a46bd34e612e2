"""Guards, breaker and the ways in of each trigger, over fakes."""

from __future__ import annotations

import pytest

from compaction.auto import Switches, run
from compaction.core.messages import Message
from compaction.core.results import CompactionResult, Order, Outcome, SessionFacts, Skipped
from compaction.core.thresholds import thresholds
from compaction.errors import ApiError
from compaction.task import Ports
from tests.unit.fakes import MemoryHistory, MemoryRecorder, ScriptedHooks, ScriptedSummarizer, a_task, flat_price, talk

pytestmark = pytest.mark.anyio

BIG = talk(40)  # about 40 × 4,000 characters, far over the threshold below
WINDOW = thresholds(30_000, 64_000)  # auto-compact at 15,000: half of a small window


class World:
    """One session and its job."""

    def __init__(
        self, trigger: str = "auto", messages: tuple[Message, ...] = BIG, settings: dict[str, bool] | None = None
    ) -> None:
        self.history = MemoryHistory(messages)
        self.recorder = MemoryRecorder()
        self.summarizer = ScriptedSummarizer()
        self.force = False
        self.query_source: str | None = None
        self._trigger = trigger
        self._settings = settings or {}

    async def run(self, **switches: bool) -> Outcome:
        """The outcome."""
        facts = SessionFacts(
            session_id="s",
            tenant="t",
            model="claude-haiku-4-5",
            settings=dict(self._settings),
            query_source=self.query_source,
        )
        order = Order(job_id="j", trigger=self._trigger, force=self.force)  # type: ignore[arg-type]  # a test's word
        task = a_task(self.history.messages, order, facts, thresholds=WINDOW)
        ports = Ports(
            history=self.history,
            summarizer=self.summarizer,
            extractive=self.summarizer,
            recorder=self.recorder,
            hooks=ScriptedHooks(),
            price=flat_price,
        )
        return await run(task, Switches(**switches), ports)


async def test_a_session_over_its_threshold_is_compacted() -> None:
    assert isinstance(await World().run(), CompactionResult)


async def test_a_session_below_its_threshold_is_skipped() -> None:
    assert await World(messages=talk(3)).run() == Skipped("below_threshold")


async def test_disable_compact_stops_every_trigger_before_anything_is_loaded() -> None:
    for trigger in ("auto", "manual", "reactive", "bulk"):
        world = World(trigger)
        assert await world.run(disable_compact=True) == Skipped("disabled")
        assert world.history.loads == 0


async def test_disable_auto_compact_stops_automatic_jobs_only() -> None:
    assert await World().run(disable_auto_compact=True) == Skipped("disabled")
    assert isinstance(await World("manual").run(disable_auto_compact=True), CompactionResult)


async def test_an_open_breaker_skips_automatic_and_bulk_jobs() -> None:
    assert await World().run(breaker_open=True) == Skipped("circuit_open")
    assert await World("bulk").run(breaker_open=True) == Skipped("circuit_open")
    assert isinstance(await World("manual").run(breaker_open=True), CompactionResult)


async def test_a_forced_bulk_job_passes_an_open_breaker() -> None:
    world = World("bulk")
    world.force = True
    assert isinstance(await world.run(breaker_open=True), CompactionResult)


@pytest.mark.parametrize("source", ["session_memory", "compact", "marble_origami"])
async def test_compactions_own_sessions_are_never_compacted(source: str) -> None:
    world = World("manual")
    world.query_source = source
    assert await world.run() == Skipped("recursion_guard")


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("auto_compact_enabled", False, "disabled"),
        ("reactive_mode", True, "reactive_mode"),
        ("context_collapse", True, "context_collapse"),
    ],
)
async def test_a_session_can_switch_automatic_compaction_off(setting: str, value: bool, reason: str) -> None:
    assert await World(settings={setting: value}).run() == Skipped(reason)


async def test_a_session_of_one_message_has_nothing_to_compact() -> None:
    short = (Message(role="user", content="hello " * 20_000, seq=1),)
    assert await World("manual", short).run() == Skipped("nothing_to_compact")
    assert await World("auto", short).run() == Skipped("nothing_to_compact")


async def test_a_failure_is_told_with_its_code_and_raised() -> None:
    world = World()
    world.summarizer.script = [ApiError(status=400)]
    with pytest.raises(ApiError):
        await world.run()
    name, told = world.recorder.events[-1]
    assert name == "tengu_compact_failed"
    assert (told["code"], told["auto"], told["retryable"]) == ("api_error", True, False)
