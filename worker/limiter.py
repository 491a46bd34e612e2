"""Places for calls to the model: who may call now, so that all workers together stay within the provider's limits.

What was used is known in Redis. When Redis is away or has lost its memory, nobody knows what the others have used: then
calls wait until all of that has left the window, and from there on each worker takes no more than an equal share. What
a process granted in that time it tells Redis as soon as it can.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from compaction import telemetry
from compaction.core.rate_window import Granted, Limits, RateWindow, Spend
from compaction.errors import Throttled
from worker.shared_limits import Asked, SharedLimits, Taken, Unreachable

HOLD_SECONDS = 5.0  # a call that must wait longer gives its slot back: the row sleeps instead
SETTLE_SECONDS = 3.0  # after a loss of memory, for all workers to tell what they had granted: they look each second
KEEP_SECONDS = 1.0
RENEW_TURNS = 20  # of the keeper, a third of the time for which a call in flight counts
BUSY_SECONDS = 0.5  # until a place of the tenant may be free: calls end at any time

_log = telemetry.logger("limits")


@dataclass(slots=True)
class Place:
    """A granted call, until `leave`. `taken` is None when the process granted it alone."""

    asked: Asked
    granted: Granted
    taken: Taken | None


class _Model:
    """What this process knows of one model's limits: its own grants, and whether Redis can be believed."""

    def __init__(self, window_seconds: float) -> None:
        self.window = RateWindow(window_seconds)
        self.born: int | None = None
        self.doubted_at: float | None = None  # Redis went away or forgot: its sums may miss what others used
        self.contact_at: float | None = None  # and it was told what we had granted
        self.paused_until = 0.0

    def doubt(self, now: float) -> None:
        """From now on the shared sums may be too low."""
        self.doubted_at = now if self.doubted_at is None else self.doubted_at

    def lost(self, now: float) -> None:
        """Redis does not answer."""
        self.doubt(now)
        self.contact_at = None

    def forgiven_seconds(self, now: float) -> float:
        """How long until everything that was used before the doubt has left the window; 0: only shares count."""
        return 0.0 if self.doubted_at is None else max(0.0, self.doubted_at + self.window.seconds - now)

    def settling_seconds(self, now: float) -> float:
        """How long the others still need to tell what they granted."""
        return 0.0 if self.contact_at is None else max(0.0, self.contact_at + SETTLE_SECONDS - now)

    def trust(self) -> None:
        """The shared sums are whole."""
        self.doubted_at = self.contact_at = None


class Limiter:
    """The places of one credential. One per process, used on its loop; `sharers` tells how many processes share."""

    def __init__(
        self,
        shared: SharedLimits,
        limits: Limits,
        *,
        sharers: Callable[[], Awaitable[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rates = limits.rates
        self._tenant_calls = limits.tenant_calls
        self._window_seconds = limits.window_seconds
        self._shared = shared
        self._sharers = sharers
        self._clock = clock
        self._models: dict[str, _Model] = {}
        self._in_flight: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._calls = (f"{secrets.token_hex(6)}:{number}" for number in itertools.count())
        self._leaving: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Closes the connections to Redis."""
        await self._shared.aclose()

    async def enter(self, model: str, tenant: str, spend: Spend) -> Place:
        """A place for one call; waits a few seconds if it must. Raises Throttled when that is not enough."""
        asked = Asked(
            model=model,
            tenant=tenant,
            call=next(self._calls),
            spend=self.rates.fitted(spend),
            settle_seconds=SETTLE_SECONDS,
        )
        until = self._clock() + HOLD_SECONDS
        while True:
            found = await self._try(asked)
            if isinstance(found, Place):
                self._in_flight[model, tenant].add(asked.call)
                return found
            if self._clock() + found > until:
                raise Throttled(retry_after_seconds=found)
            await asyncio.sleep(max(found, 0.01))

    def leave(self, place: Place, actual: Spend | None, pause_seconds: float = 0.0) -> None:
        """The call has ended; Redis hears of it behind the caller's back.

        `actual` None: nobody knows what it cost, so the estimate stays. `pause_seconds`: the provider wants everybody
        to wait.
        """
        asked, model = place.asked, self._model(place.asked.model)
        self._in_flight[asked.model, asked.tenant].discard(asked.call)
        correction = Spend(0) if actual is None else actual - place.granted.spend
        place.granted.spend += correction
        model.paused_until = max(model.paused_until, self._clock() + pause_seconds)
        task = asyncio.create_task(self._settle(place, model, correction, pause_seconds))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def keep_for_ever(self) -> None:
        """Each second: tells Redis what it does not know, and that the calls in flight still are."""
        for turn in itertools.count(1):
            await asyncio.sleep(KEEP_SECONDS)
            for name, model in list(self._models.items()):
                await self._keep(name, model, renew=turn % RENEW_TURNS == 0)

    async def _try(self, asked: Asked) -> Place | float:
        """A place, or after how many seconds to ask again."""
        model, now = self._model(asked.model), self._clock()
        if model.paused_until > now:
            return model.paused_until - now
        if model.doubted_at is not None and model.forgiven_seconds(now) == 0:
            return await self._try_alone(model, asked, max(1, await self._sharers()))
        try:
            if model.doubted_at is not None and model.contact_at is None:
                await self._tell(asked.model, model)
                model.contact_at = now
            if (wait := model.settling_seconds(now)) > 0:
                return wait
            taken = await self._shared.take(asked)
            if (wait := await self._judged(model, asked.model, taken)) > 0:
                return wait
        except Unreachable as problem:
            self._note_loss(model, now, problem)
            return max(model.forgiven_seconds(now), BUSY_SECONDS)
        granted = Granted(self._clock(), asked.spend, taken.born)
        model.window.add(granted)
        return Place(asked, granted, taken)

    async def _try_alone(self, model: _Model, asked: Asked, sharers: int) -> Place | float:
        """A place within this process's own share, for which Redis, if it is there, must find room as well.

        It counts before Redis is asked: many calls ask at once.
        """
        now, calls = self._clock(), self._in_flight[asked.model, asked.tenant]
        if self._tenant_calls is not None and len(calls) >= max(1, self._tenant_calls // sharers):
            return BUSY_SECONDS
        if (wait := model.window.wait_seconds(asked.spend, self.rates.share(sharers), now)) > 0:
            return wait
        place = Place(asked, Granted(now, asked.spend), None)
        model.window.add(place.granted)
        calls.add(asked.call)
        wait = BUSY_SECONDS
        try:
            taken = await self._shared.take(replace(asked, settle_seconds=0.0))
            wait = await self._judged(model, asked.model, taken)
            place.granted.born, place.taken = taken.born, taken
        except Unreachable as problem:
            self._note_loss(model, now, problem)
            wait = 0.0
        finally:
            if wait > 0:
                model.window.remove(place.granted)
                calls.discard(asked.call)
        return place if wait <= 0 else wait

    async def _judged(self, model: _Model, name: str, taken: Taken) -> float:
        """How long to wait after this answer, 0 if it is a place; what it says about Redis's memory is noted."""
        now = self._clock()
        if model.born not in {None, taken.born}:
            if model.doubted_at is None:
                _log.warning("limits.forgotten", model=name)
            await self._tell(name, model)
        model.born = taken.born
        if taken.obstacle == "young":
            model.doubt(now)
        if model.doubted_at is not None and model.contact_at is None:
            await self._tell(name, model)
            model.contact_at = now
        elif taken.age_seconds >= SETTLE_SECONDS and model.settling_seconds(now) == 0:
            model.trust()
        if not taken.obstacle:
            return 0.0
        return BUSY_SECONDS if taken.obstacle == "tenant" else max(taken.wait_seconds, 0.01)

    async def _tell(self, name: str, model: _Model) -> None:
        """Tells Redis of the grants that it does not know. Raises Unreachable."""
        now = self._clock()
        born = await self._shared.record(name, (), now)
        unknown = [one for one in model.window.grants(now) if one.born != born]
        if unknown and await self._shared.record(name, unknown, now) == born:
            for one in unknown:
                one.born = born
        if model.born not in {None, born}:
            model.doubt(now)
            model.contact_at = now
        model.born = born

    async def _keep(self, name: str, model: _Model, *, renew: bool) -> None:
        now = self._clock()
        calls = {tenant: ids for (of, tenant), ids in self._in_flight.items() if of == name and ids}
        if not calls and not model.window.grants(now) and model.paused_until <= now:
            if model.doubted_at is None:
                del self._models[name]
            return
        forgot = model.born
        try:
            await self._tell(name, model)
            if renew or forgot != model.born:
                for tenant, ids in calls.items():
                    await self._shared.renew(name, tenant, tuple(ids))
        except Unreachable as problem:
            self._note_loss(model, now, problem)

    async def _settle(self, place: Place, model: _Model, correction: Spend, pause_seconds: float) -> None:
        if place.taken is None:
            return  # the keeper tells of it
        try:
            await self._shared.settle(place.asked, place.taken, correction, pause_seconds)
        except Unreachable as problem:
            self._note_loss(model, self._clock(), problem)

    def _note_loss(self, model: _Model, now: float, problem: Unreachable) -> None:
        if model.doubted_at is None or model.contact_at is not None:
            _log.warning("limits.redis_lost", problem=str(problem))
        model.lost(now)

    def _model(self, name: str) -> _Model:
        return self._models.setdefault(name, _Model(self._window_seconds))
