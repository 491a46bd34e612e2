"""A token bucket: so many requests at once, and after that as many as flow in. Pure: the caller tells the time."""

from __future__ import annotations

from dataclasses import dataclass

BURST_SECONDS = 10.0  # of the rate may be used at once: a producer that starts up asks for a page of things


@dataclass(frozen=True, slots=True)
class Flow:
    """What a bucket holds, in requests, and how much flows into it in a second."""

    capacity: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """How full a bucket was at a moment of its owner's clock, in seconds."""

    level: float
    at_seconds: float


@dataclass(frozen=True, slots=True)
class Draw:
    """Whether a request may go on, how many more may follow at once, and for how long a refused one should wait."""

    allowed: bool
    left: int
    wait_seconds: float
    full_seconds: float


def flow_of(requests_per_minute: int) -> Flow:
    """The flow for a rate; a bucket holds at least one request."""
    per_second = requests_per_minute / 60
    return Flow(max(1.0, per_second * BURST_SECONDS), per_second)


def draw(bucket: Bucket | None, now_seconds: float, flow: Flow) -> tuple[Bucket, Draw]:
    """One request: the bucket afterwards, and what is to become of it. None is a full bucket; time never flows back."""
    level = flow.capacity
    if bucket is not None:
        passed_seconds = max(0.0, now_seconds - bucket.at_seconds)
        level = min(flow.capacity, bucket.level + passed_seconds * flow.per_second)
    allowed = level >= 1
    left = level - 1 if allowed else level
    return Bucket(left, now_seconds), drawn(left, flow, allowed=allowed)


def drawn(level: float, flow: Flow, *, allowed: bool) -> Draw:
    """What a request that left `level` in the bucket comes to."""
    wait_seconds = 0.0 if allowed else (1 - level) / flow.per_second
    return Draw(allowed, int(level), wait_seconds, (flow.capacity - level) / flow.per_second)
