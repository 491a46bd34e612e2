"""Who is next."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core import fairness
from compaction.core.fairness import BULK, BULK_PATIENCE_SECONDS, Candidate, Room, pick

MANUAL, AUTO = 10, 20
LARGE = Room(jobs=1_000, bulk=1_000)


def waiting(tenant: int, count: int, priority: int = AUTO, waited_seconds: float = 1.0) -> list[Candidate]:
    """A tenant's jobs, the first one the oldest."""
    return [
        Candidate(f"{tenant}-{priority}-{number}", tenant, priority, waited_seconds + (count - number) / 1_000)
        for number in range(count)
    ]


def tenants(picked: list[str]) -> list[int]:
    return [int(job_id.split("-")[0]) for job_id in picked]


def test_the_urgent_class_goes_first_whoever_waits_longer() -> None:
    jobs = waiting(1, 1, BULK, 500) + waiting(1, 1, AUTO, 100) + waiting(2, 1, MANUAL, 1)
    assert pick(jobs, {}, LARGE) == ["2-10-0", "1-20-0", "1-30-0"]


def test_tenants_take_turns_and_within_a_tenant_the_oldest_goes_first() -> None:
    picked = pick(waiting(1, 3, waited_seconds=9) + waiting(2, 3) + waiting(3, 1), {}, Room(jobs=5, bulk=0))
    assert picked == ["1-20-0", "2-20-0", "3-20-0", "1-20-1", "2-20-1"]


def test_ten_jobs_behind_ten_thousand_are_all_among_the_first_twenty() -> None:
    picked = pick(waiting(1, 10_000, waited_seconds=60) + waiting(2, 10), {}, Room(jobs=20, bulk=0))
    assert Counter(tenants(picked)) == {1: 10, 2: 10}


def test_a_tenant_with_jobs_in_flight_waits_until_the_others_have_as_many() -> None:
    picked = pick(waiting(1, 9, waited_seconds=60) + waiting(2, 9), {(1, AUTO): 3}, Room(jobs=5, bulk=0))
    assert tenants(picked) == [2, 2, 2, 1, 2]


def test_a_tenants_archive_does_not_push_its_people_back() -> None:
    """Two hundred bulk jobs in flight count for bulk alone."""
    picked = pick(waiting(1, 2, waited_seconds=60) + waiting(2, 2), {(1, BULK): 200}, Room(jobs=2, bulk=0))
    assert tenants(picked) == [1, 2]


def test_bulk_takes_no_more_than_its_room_and_leaves_the_rest_to_others() -> None:
    picked = pick(waiting(1, 50, BULK) + waiting(2, 3), {}, Room(jobs=20, bulk=6))
    assert Counter(tenants(picked)) == {1: 6, 2: 3}


def test_bulk_that_has_waited_too_long_ranks_as_an_automatic_job_and_still_keeps_to_its_share() -> None:
    old = waiting(1, 50, BULK, waited_seconds=BULK_PATIENCE_SECONDS)
    picked = pick(old + waiting(2, 50), {}, Room(jobs=10, bulk=3))
    assert Counter(tenants(picked)) == {1: 3, 2: 7}
    assert tenants(picked)[:2] == [1, 2]


def test_no_tenant_gets_more_jobs_than_it_may_have_in_flight() -> None:
    room = Room(jobs=100, bulk=100, tenant_jobs=4)
    picked = pick(waiting(1, 9) + waiting(1, 9, BULK) + waiting(2, 9), {(1, MANUAL): 1, (2, AUTO): 4}, room)
    assert Counter(tenants(picked)) == {1: 3}


def test_nothing_is_picked_without_room() -> None:
    assert pick(waiting(1, 5), {}, Room(jobs=0, bulk=5)) == []


@pytest.mark.parametrize(
    ("slots", "running", "out", "expected"),
    [
        (20, 0, 0, 30),  # 1.5 rings a free slot
        (20, 10, 5, 10),
        (20, 20, 0, 0),
        (20, 25, 0, 0),  # a worker left
        (20, 19, 0, 2),  # ⌈1.5⌉
        (0, 0, 0, 0),
    ],
)
def test_the_window_is_a_little_larger_than_the_free_slots(slots: int, running: int, out: int, expected: int) -> None:
    assert fairness.free_room(slots, {(1, AUTO): running}, out) == expected


@pytest.mark.parametrize(
    ("slots", "running_bulk", "out", "others_wait", "expected"),
    [
        (20, 0, 0, True, 6),  # 30 % of 20
        (300, 0, 0, False, 270),  # a tenth stays free: somebody who comes finds a slot
        (100, 0, 0, False, 84),  # and at least sixteen
        (20, 0, 0, False, 10),  # or half of them
        (20, 4, 1, True, 1),
        (20, 10, 0, False, 0),
        (1, 0, 0, True, 1),  # never none at all
        (0, 0, 0, False, 0),
    ],
)
def test_bulk_has_a_share_of_the_slots(
    slots: int, running_bulk: int, out: int, *, others_wait: bool, expected: int
) -> None:
    in_flight = {(1, BULK): running_bulk, (1, AUTO): 1}
    assert fairness.bulk_room(slots, in_flight, out, others_wait=others_wait) == expected


CANDIDATES = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.sampled_from([MANUAL, AUTO, BULK]),
        st.floats(0, 2 * BULK_PATIENCE_SECONDS, allow_nan=False),
    ),
    max_size=60,
)
IN_FLIGHT = st.dictionaries(st.tuples(st.integers(1, 5), st.sampled_from([MANUAL, AUTO, BULK])), st.integers(0, 9))
ROOMS = st.builds(Room, jobs=st.integers(0, 70), bulk=st.integers(0, 30), tenant_jobs=st.none() | st.integers(1, 20))


@given(CANDIDATES, IN_FLIGHT, ROOMS)
def test_every_choice_keeps_within_the_room_and_leaves_nobody_out_whom_it_holds(
    facts: list[tuple[int, int, float]], in_flight: dict[tuple[int, int], int], room: Room
) -> None:
    jobs = [Candidate(f"{place}", *fact) for place, fact in enumerate(facts)]
    picked = pick(jobs, in_flight, room)
    known = {one.job_id: one for one in jobs}
    assert len(picked) == len(set(picked)) <= room.jobs
    assert sum(known[job_id].is_bulk for job_id in picked) <= room.bulk
    most = room.tenant_jobs if room.tenant_jobs is not None else 10**9
    busy = Counter(dict.fromkeys(range(1, 6), 0))
    for (tenant, _), count in in_flight.items():
        busy[tenant] += count
    taken = Counter(known[job_id].tenant_id for job_id in picked)
    for tenant, count in taken.items():
        assert busy[tenant] + count <= most
    if len(picked) < room.jobs:
        bulk_left = room.bulk - sum(known[job_id].is_bulk for job_id in picked)
        for one in jobs:
            full = busy[one.tenant_id] + taken[one.tenant_id] >= most
            assert one.job_id in picked or full or (one.is_bulk and bulk_left <= 0)
