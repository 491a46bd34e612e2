"""The director: draws faults from seeded dice, keeps jobs coming, waits for the end, and has the books compared."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.arena import Arena
from tests.chaos.audit import Audit, Line
from tests.chaos.faults.kinds import WEIGHTS, Fault
from tests.chaos.producer import Producer
from tests.chaos.scene import Later, Missed, Scene
from tests.chaos.slots import wait

END_SECONDS = 180.0  # after the last fault: three leases, their pauses, and a busy machine
MAX_TOP_UPS = 20  # each makes at least half of what is missing
MAX_LIVE = 60  # jobs that have not ended; more only wait
CROWD_SECONDS = 20.0  # how long a fault waits for the crowd to thin
PAUSE_SECONDS = (0.05, 0.3)  # between two faults
REQUESTS_A_JOB = 2  # at most: requests that join a waiting job make none
MAX_MISSED = 0.3  # of the planned faults: their moment did not come


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything. `max_seconds` bounds the whole run, the waiting for the end included."""

    seed: int
    jobs: int
    faults: int
    max_seconds: float
    workers: int = 3
    sessions: int = 40
    long_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run."""

    lines: list[Line]
    kinds: Counter[str]
    outcomes: Counter[str]
    jobs: int
    seconds: float
    wanted_jobs: int

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept, by as many jobs as were wanted."""
        return self.jobs >= self.wanted_jobs and all(line.is_kept for line in self.lines)


def drawn(plan: Plan, rng: random.Random) -> list[Fault]:
    """Every kind once, the rest by weight, shuffled; poison first, because its end takes the longest."""
    kinds = list(WEIGHTS)
    rest = rng.choices(kinds, weights=list(WEIGHTS.values()), k=max(0, plan.faults - len(kinds)))
    first, *others = kinds
    others += rest
    rng.shuffle(others)
    return [first, *others]


def run(plan: Plan, tell: Callable[[str], object]) -> Report:
    """One run from empty servers to the audit. Raises TimeoutError when the plan does not fit its time."""
    rng = random.Random(plan.seed)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="compactd-chaos-") as folder,
        Arena(Path(folder), workers=plan.workers) as arena,
    ):
        with Producer(arena, rng, sessions=plan.sessions) as producer:
            scene = Scene(arena, producer, rng, plan.long_seconds)
            _inject(plan, scene, started, tell)
            _top_up(scene, plan)
            _wait_for_the_end(scene, plan, started, tell)
        for worker in arena.workers:
            worker.is_wanted = False
            worker.settle()
            worker.drain()
        audit = Audit(arena, producer)
        kinds = Counter(fault.kind for fault in arena.record.disruptions)
        seconds = time.monotonic() - started
        report = Report(audit.lines(), kinds, audit.outcomes(), len(audit.jobs), seconds, plan.jobs)
        if not report.is_good:
            _keep_logs(arena, tell)
        return report


def _inject(plan: Plan, scene: Scene, started: float, tell: Callable[[str], object]) -> None:
    record, ongoing = scene.arena.record, Ongoing()
    todo, missed = drawn(plan, scene.rng), 0
    each = -(-plan.jobs * REQUESTS_A_JOB // len(todo))
    while todo:
        if time.monotonic() - started > plan.max_seconds:
            raise TimeoutError(f"{len(record.disruptions)} faults in {plan.max_seconds:.0f} s; {len(todo)} are left")
        fault = todo.pop(0)
        wait(lambda: len(scene.live_jobs()) < MAX_LIVE, CROWD_SECONDS)
        scene.producer.order(each)
        ongoing.end_due()
        try:
            ongoing.add(fault(scene))
        except Missed:
            missed += 1
            tell(f"{name_of(fault)} found no moment: {producer_state(scene)}")
            if missed > MAX_MISSED * plan.faults:
                raise TimeoutError(f"{missed} faults found no moment; the last was {name_of(fault)}") from None
            todo.append(fault)
            continue
        told = f"{producer_state(scene)}, {time.monotonic() - started:.0f} s"
        tell(f"[{len(record.disruptions):3}/{plan.faults}] {name_of(fault):42} {told}")
        time.sleep(scene.rng.uniform(*PAUSE_SECONDS))
    ongoing.end_all()


def _top_up(scene: Scene, plan: Plan) -> None:
    """Orders until there are as many jobs as the plan wants."""
    for _ in range(MAX_TOP_UPS):
        wait(lambda: scene.producer.is_idle and len(scene.live_jobs()) < MAX_LIVE, CROWD_SECONDS)
        missing = plan.jobs - scene.arena.rows("SELECT count(*) FROM jobs")[0][0]
        if missing <= 0:
            return
        scene.producer.order(missing)


class Ongoing:
    """Faults that last while others come."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, Callable[[], object]]] = []

    def add(self, later: Later | None) -> None:
        """Remembers when a fault is to end."""
        if later is not None:
            self._ends.append((time.monotonic() + later.seconds, later.end))

    def end_due(self) -> None:
        """Ends those whose time is over."""
        now = time.monotonic()
        over, self._ends = [one for one in self._ends if one[0] <= now], [one for one in self._ends if one[0] > now]
        for _, end in over:
            end()

    def end_all(self) -> None:
        """Waits for the rest."""
        for due, _ in sorted(self._ends, key=lambda one: one[0]):
            time.sleep(max(0.0, due - time.monotonic()))
            self.end_due()


def name_of(fault: Fault) -> str:
    """As the code calls it: broker.go_away."""
    return f"{fault.__module__.rsplit('.', 1)[-1]}.{fault.__name__}"


def producer_state(scene: Scene) -> str:
    """How the jobs stand."""
    return f"{scene.producer.answered} accepted, {len(scene.live_jobs())} not ended"


def _wait_for_the_end(scene: Scene, plan: Plan, started: float, tell: Callable[[str], object]) -> None:
    left = max(END_SECONDS / 2, min(END_SECONDS, plan.max_seconds - (time.monotonic() - started)))
    tell(f"waiting for the end: {producer_state(scene)}")
    done = wait(lambda: scene.producer.is_idle and not scene.live_jobs(), left)
    tell(f"{'everything has ended' if done else 'NOT EVERYTHING HAS ENDED'}: {producer_state(scene)}")


def _keep_logs(arena: Arena, tell: Callable[[str], object]) -> None:
    for name, text in arena.logs():
        tell(f"--- {name}\n{text[-1500:]}")
