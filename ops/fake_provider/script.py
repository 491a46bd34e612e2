"""What the fake answers: steps in order (the last one repeats), limits that come first, and how fast time runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any, Literal, get_args

from compaction.core.jsonbytes import Json

LimitKind = Literal["input_tokens", "input_plus_output", "body_bytes", "max_tokens", "part_chars", "forbid_blocks"]
DEFAULT_INTENT = "Finish what the session set out to do."
DEFAULT_CHUNKS = 20  # deltas of a reply when nobody says how many


class ScriptProblem(ValueError):
    """The script is none; the text names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reply to POST /v1/messages. Which fields go together is told in `replies.plan_for`."""

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    thinking: str | None = None
    content: tuple[Mapping[str, Any], ...] | None = None
    stop_reason: str = "end_turn"
    stop_details: Json = None
    good_summary: Mapping[str, str] | None = None
    sse_error: Mapping[str, Any] | None = None
    after_text: str = ""
    disconnect_after_chars: int | None = None
    end_after_chars: int | None = None
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    chunks: int | None = None
    raw: str | None = None
    content_type: str = "text/html"
    empty_stream: bool = False

    @property
    def is_silence(self) -> bool:
        """Whether the step only waits and then hangs up."""
        said = (self.body, self.text, self.thinking, self.content, self.good_summary, self.sse_error, self.raw)
        paced = (self.disconnect_after_chars, self.end_after_chars, self.chunks)
        plain = self.status == HTTPStatus.OK and not self.empty_stream and not self.chunk_delay_s
        return plain and self.delay_s > 0 and all(part is None for part in said + paced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A refusal of every request that measures more than `max`; uses up no step."""

    limit: LimitKind
    max: int = 0
    types: tuple[str, ...] = ()  # of forbid_blocks
    reply: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Everything that decides the fake's answers. A JSON file holds the same names; a list stands for its `steps`."""

    steps: tuple[Step, ...] = (Step(good_summary={}),)
    limits: tuple[Limit, ...] = ()
    refuse_over_window: bool = False  # 400 "prompt is too long" as soon as the prompt is over the model's window
    windows: Mapping[str, int] = field(default_factory=dict)  # tokens by model; else the product's own table
    time_divider: float = 1.0  # every delay is divided by it
    latency_s: float = 0.0  # of replies without own pauses: their chunks are spread over it
    chunks: int = DEFAULT_CHUNKS
    exact_usage: bool = True  # False: input tokens are guessed from the body's size, and the body is not decoded
    keep_bodies: bool = True  # in the ledger
    api_key: str | None = None  # None: any key will do
    batch_s: float = 0.5  # how long a batch takes
    batch_expires: bool = False  # whether none of its requests is begun in time
    hold_calls: frozenset[int] = frozenset()  # model calls, from 1 at each `play`, that wait for `release`


def script_from(value: Json) -> Script:
    """The script in decoded JSON. Raises ScriptProblem."""
    if value is None:
        return Script()
    if isinstance(value, list):
        value = {"steps": value}
    told = _known(value, Script, "script")
    if "steps" in told:
        told["steps"] = tuple(_step(item, f"steps[{n}]") for n, item in enumerate(told["steps"])) or Script().steps
    if "limits" in told:
        told["limits"] = tuple(_limit(item, f"limits[{n}]") for n, item in enumerate(told["limits"]))
    if "hold_calls" in told:
        told["hold_calls"] = frozenset(told["hold_calls"])
    script = Script(**told)
    if script.time_divider <= 0 or script.chunks < 1:
        raise ScriptProblem("script: time_divider must be over 0 and chunks at least 1")
    return script


def good_summary_text(spec: Mapping[str, str]) -> str:
    """A summary that any validator should take; `include` goes into section 8, `intent` into section 1."""
    text = _good_summary().replace("{include}", spec.get("include", ""))
    return text.replace("{intent}", spec.get("intent", DEFAULT_INTENT))


@cache
def _good_summary() -> str:
    return resources.files(__package__ or "ops.fake_provider").joinpath("good_summary.txt").read_text("utf-8").rstrip()


def _step(value: Json, where: str) -> Step:
    told = _known(value, Step, where)
    if not told:
        raise ScriptProblem(f"{where}: is empty")
    if "content" in told:
        told["content"] = tuple(told["content"])
    return Step(**told)


def _limit(value: Json, where: str) -> Limit:
    told = _known(value, Limit, where)
    if told.get("limit") not in get_args(LimitKind) or "reply" not in told:
        raise ScriptProblem(f"{where}: needs a reply and a limit out of {', '.join(get_args(LimitKind))}")
    told["types"] = tuple(told.get("types", ()))
    return Limit(**(told | {"reply": _step(told["reply"], f"{where}.reply")}))


def _known(value: Json, kind: type, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScriptProblem(f"{where}: must be an object")
    unknown = sorted(set(value) - {one.name for one in fields(kind)})
    if unknown:
        raise ScriptProblem(f"{where}: unknown field {unknown[0]}")
    return dict(value)
