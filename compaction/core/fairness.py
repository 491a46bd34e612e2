"""Who is next: which waiting jobs the workers hear of now, when there are more jobs than slots.

Few rings are out at a time (a window a little larger than the free slots), so that who is next is decided late. In that
window the more urgent class goes first; within a class the tenants take turns, the one with the fewest jobs in flight
first; within a tenant the oldest goes first. Bulk has a bounded share, and what waits too long moves up a class.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from compaction.core.jobs import PRIORITIES

OVERBOOKING = 1.5  # rings per free slot: the next jobs lie ready when a slot frees (facts/queue.md §3.2)
BULK_SHARE = 0.3  # of all slots while others wait (facts/queue.md §3.6)
FREE_SHARE = 0.1  # of all slots that bulk leaves free when it is alone: whoever comes need not wait for an end
FREE_SLOTS = 16  # and no fewer than so many, in a small fleet half of the slots
BULK_PATIENCE_SECONDS = 600.0  # a bulk job that has waited so long ranks as an automatic one: it never starves
BULK = PRIORITIES["bulk"]
AGED_BULK = PRIORITIES["auto"]

InFlight = Mapping[tuple[int, int], int]  # running jobs by (tenant id, priority)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may start now. `waited_seconds` counts from the time it was allowed to start."""

    job_id: str
    tenant_id: int
    priority: int
    waited_seconds: float

    @property
    def is_bulk(self) -> bool:
        """Whether it belongs to the class with the bounded share."""
        return self.priority >= BULK

    @property
    def rank(self) -> int:
        """Its class, lower first, after ageing."""
        aged = self.is_bulk and self.waited_seconds >= BULK_PATIENCE_SECONDS
        return AGED_BULK if aged else self.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much may be rung for: `jobs` in all, of them `bulk` of the bulk class, and so many per tenant in flight."""

    jobs: int
    bulk: int
    tenant_jobs: int | None = None


def free_room(slots: int, in_flight: InFlight, out: int) -> int:
    """How many rings may go out while `out` have not been heard yet: a little more than the free slots."""
    return max(0, math.ceil(OVERBOOKING * max(0, slots - sum(in_flight.values()))) - out)


def bulk_room(slots: int, in_flight: InFlight, out: int, *, others_wait: bool) -> int:
    """How many of them may be bulk. Whose rings are out is not known: here they count as bulk."""
    if slots <= 0:
        return 0
    free = max(math.ceil(FREE_SHARE * slots), min(FREE_SLOTS, slots // 2))
    most = math.floor(BULK_SHARE * slots) if others_wait else slots - free
    running = sum(count for (_, priority), count in in_flight.items() if priority >= BULK)
    return max(0, max(1, most) - running - out)


def pick(candidates: Collection[Candidate], in_flight: InFlight, room: Room) -> list[str]:
    """The ids to ring for, in the order of ringing.

    Bulk and other jobs of a tenant are counted apart, so that its own archive does not push its people back.
    """
    turns = _Turns(in_flight, room)
    queues: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for one in sorted(candidates, key=lambda one: (-one.waited_seconds, one.job_id)):
        queues[one.rank, one.tenant_id].append(one)
    picked: list[str] = []
    for rank in sorted({rank for rank, _ in queues}):
        tenants = {tenant: queue for (of, tenant), queue in queues.items() if of == rank}
        picked += turns.take(tenants)
    return picked


class _Turns:
    """The tenants' turns; counts what has been picked so far."""

    def __init__(self, in_flight: InFlight, room: Room) -> None:
        self._jobs = room.jobs
        self._bulk = room.bulk
        self._most = math.inf if room.tenant_jobs is None else room.tenant_jobs
        self._all: dict[int, int] = defaultdict(int)
        self._by_kind: dict[tuple[int, bool], int] = defaultdict(int)
        for (tenant, priority), count in in_flight.items():
            self._all[tenant] += count
            self._by_kind[tenant, priority >= BULK] += count

    def take(self, tenants: Mapping[int, Sequence[Candidate]]) -> list[str]:
        """Picks from the queues of one rank until they or the room are used up."""
        picked: list[str] = []
        places = dict.fromkeys(tenants, 0)
        heap = [self._turn(queue[0]) for queue in tenants.values()]
        heapq.heapify(heap)
        while heap and self._jobs > 0:
            tenant = heapq.heappop(heap)[-1]
            one = tenants[tenant][places[tenant]]
            if self._all[tenant] >= self._most:
                continue
            if not one.is_bulk or self._bulk > 0:
                self._count(one)
                picked.append(one.job_id)
            places[tenant] += 1
            if places[tenant] < len(tenants[tenant]):
                heapq.heappush(heap, self._turn(tenants[tenant][places[tenant]]))
        return picked

    def _turn(self, one: Candidate) -> tuple[int, float, int]:
        return self._by_kind[one.tenant_id, one.is_bulk], -one.waited_seconds, one.tenant_id

    def _count(self, one: Candidate) -> None:
        self._jobs -= 1
        self._bulk -= one.is_bulk
        self._all[one.tenant_id] += 1
        self._by_kind[one.tenant_id, one.is_bulk] += 1
