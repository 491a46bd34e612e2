"""How much of a provider's limits is used: what was granted in the last window, and when there is room for more.

A limit holds in any window, wherever it begins: a bucket that refills would let a burst and the refill through, almost
twice as much. The shared state of all workers keeps the same sums in Redis (`worker/limits.lua`); this one is a single
process's own part of them, which also serves when Redis is gone or has lost its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WINDOW_SECONDS = 60.0  # providers count by the minute
SLACK_SECONDS = 2.0  # between our grant and the provider's count: a connection, a body, a busy loop


@dataclass(frozen=True, slots=True)
class Spend:
    """What a call takes out of the limits."""

    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(*(mine + theirs for mine, theirs in zip(_values(self), _values(other), strict=True)))

    def __sub__(self, other: Spend) -> Spend:
        return Spend(*(mine - theirs for mine, theirs in zip(_values(self), _values(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Rates:
    """The most per window, None for no limit."""

    requests: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def are_set(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in self.limits())

    def limits(self) -> tuple[int | None, ...]:
        """The limits in the order of a Spend's fields."""
        return self.requests, self.input_tokens, self.output_tokens

    def share(self, sharers: int) -> Rates:
        """One of `sharers` equal shares, rounded down."""
        return Rates(*(limit if limit is None else limit // max(1, sharers) for limit in self.limits()))

    def fitted(self, spend: Spend) -> Spend:
        """The spend, no larger than the limits: what exceeds a limit alone goes when nothing else does."""
        pairs = zip(_values(spend), self.limits(), strict=True)
        return Spend(*(value if limit is None else min(value, limit) for value, limit in pairs))


@dataclass(frozen=True, slots=True)
class Limits:
    """What one credential may use: rates per window and model, and calls of one tenant in flight at once."""

    rates: Rates = Rates()
    tenant_calls: int | None = None
    window_seconds: float = WINDOW_SECONDS

    @property
    def are_set(self) -> bool:
        """Whether there is anything to count."""
        return self.rates.are_set or self.tenant_calls is not None


@dataclass(slots=True)
class Granted:
    """One grant of this process. `born` names the shared state that knows of it, None while none does."""

    at_seconds: float
    spend: Spend
    born: int | None = None


class RateWindow:
    """The grants of one process in the last window; times are the caller's, in seconds, and never go back."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS, slack_seconds: float = SLACK_SECONDS) -> None:
        self.seconds = window_seconds + slack_seconds
        self._grants: list[Granted] = []

    def grants(self, now_seconds: float) -> list[Granted]:
        """What still counts, oldest first."""
        self._grants = [one for one in self._grants if now_seconds - one.at_seconds < self.seconds]
        return self._grants

    def add(self, grant: Granted) -> None:
        """Counts a grant."""
        self._grants.append(grant)

    def remove(self, grant: Granted) -> None:
        """Counts it no longer: it was not used."""
        self._grants = [one for one in self._grants if one is not grant]

    def wait_seconds(self, spend: Spend, rates: Rates, now_seconds: float) -> float:
        """How long until `spend`, fitted to `rates`, has room; 0 when it has now. Nothing fits a limit of 0."""
        grants = self.grants(now_seconds)
        wanted = rates.fitted(spend)
        return max(_waits(grants, wanted, rates, now_seconds, self.seconds), default=0.0)


def _values(spend: Spend) -> tuple[int, int, int]:
    return spend.requests, spend.input_tokens, spend.output_tokens


def _waits(
    grants: list[Granted], wanted: Spend, rates: Rates, now_seconds: float, window_seconds: float
) -> Iterator[float]:
    """The wait that each limited resource asks for."""
    for place, limit in enumerate(rates.limits()):
        if limit is None:
            continue
        if limit <= 0:
            yield window_seconds
            continue
        over = sum(_values(one.spend)[place] for one in grants) + _values(wanted)[place] - limit
        for one in grants:
            if over <= 0:
                break
            over -= _values(one.spend)[place]
            if over <= 0:
                yield one.at_seconds + window_seconds - now_seconds
