"""Whole jobs: enqueued, claimed, summarised by a fake provider over real HTTP, committed. Beside plain arq and taskiq.

make bench-jobs                          every scenario and contender, three runs of each
make bench-jobs ARGS="--runs 1 --alone"  compactd alone, once
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.table import Table

from ops.bench import rivals
from ops.bench.compactd_jobs import compactd
from ops.bench.rig import Rig
from ops.bench.trial import Contender, Scenario, Trial, middle
from ops.bench.verdicts import Verdict, least, most, told, under

LONG = Scenario(name="long", jobs=300, latency_seconds=10.0, deltas=1_000)
QUICK = Scenario(name="quick", jobs=1_000, latency_seconds=0.0, deltas=20)
TITLES = {
    LONG.name: "300 jobs at once, answers of 10 s in 1,000 deltas",
    QUICK.name: "1,000 jobs at once, answers without latency in 20 deltas",
}
WARM = Scenario(name="warm", jobs=50, latency_seconds=0.0, deltas=20)  # imports, caches, pools: of no run
MOST_OTHERS_CORES = 0.2  # of everybody else's CPU; above it wall-clock figures suffer
OURS = "compactd"

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for each scenario and a verdict for each promise; 1 when one is not met."""
    wanted = _wanted(arguments)
    names = [OURS] if wanted.alone else [OURS, *rivals.NAMES]
    scenarios = [QUICK, LONG] if wanted.scenario == "both" else [{"quick": QUICK, "long": LONG}[wanted.scenario]]
    if not wanted.alone:
        rivals.install()
    trials = {(scenario.name, name): list[Trial]() for scenario in scenarios for name in names}
    with Rig() as rig:
        for name in names:
            for scenario, trial in _played(rig, name, scenarios, wanted.runs):
                trials[scenario.name, name].append(trial)
    verdicts: list[Verdict] = []
    for scenario in scenarios:
        print(_table(scenario, {name: trials[scenario.name, name] for name in names}))
        verdicts += _verdicts(scenario, trials[scenario.name, OURS])
    return told(verdicts)


def _wanted(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-jobs ARGS=", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each scenario by each contender; medians are told")
    parser.add_argument("--alone", action="store_true", help="compactd without arq and taskiq")
    parser.add_argument("--scenario", choices=("both", "quick", "long"), default="both")
    return parser.parse_args(arguments)


def _contender(rig: Rig, name: str) -> AbstractContextManager[Contender]:
    return compactd(rig) if name == OURS else rivals.rival(rig, name)


def _played(rig: Rig, name: str, scenarios: Sequence[Scenario], runs: int) -> Iterator[tuple[Scenario, Trial]]:
    with _contender(rig, name) as contender:
        contender.play(WARM)
        for scenario in scenarios:
            for number in range(1, runs + 1):
                with _shown(f"{contender.name}: {scenario.name} {number} of {runs} …"):
                    trial = contender.play(scenario)
                _tell(contender.name, scenario, trial)
                yield scenario, trial


@contextmanager
def _shown(text: str) -> Iterator[None]:
    with console.status(text):
        yield


def _tell(name: str, scenario: Scenario, trial: Trial) -> None:
    console.print(
        f"{name:12} {scenario.name:6} {trial.wall_seconds:6.1f} s  {trial.jobs_per_second:6.1f} jobs/s  "
        f"{trial.cpu_ms_per_job:6.1f} ms CPU/job  {trial.in_flight:4} in flight  others {trial.others_cores:.2f} cores"
    )


def _table(scenario: Scenario, trials: dict[str, list[Trial]]) -> str:
    table = Table(title=TITLES[scenario.name], title_justify="left")
    for heading in ("", "all done after", "jobs/s", "CPU ms/job", "× ours", "in flight", "MB/job", "others' cores"):
        table.add_column(heading, justify="right" if heading else "left")
    ours = middle(trials[OURS], lambda trial: trial.cpu_ms_per_job)
    for name, played in trials.items():
        cpu = middle(played, lambda trial: trial.cpu_ms_per_job)
        table.add_row(
            name,
            f"{middle(played, lambda trial: trial.wall_seconds):.1f} s",
            f"{middle(played, lambda trial: trial.jobs_per_second):.0f}",
            f"{cpu:.1f}",
            f"{cpu / ours:.1f}",
            f"{middle(played, lambda trial: trial.in_flight):.0f}",
            f"{middle(played, lambda trial: trial.mb_per_job):.2f}",
            f"{middle(played, lambda trial: trial.others_cores):.2f}",
        )
    printer = Console(width=100)
    with printer.capture() as text:
        printer.print(table)
    return text.get()


def _verdicts(scenario: Scenario, trials: Sequence[Trial]) -> list[Verdict]:
    """The promises of one scenario, by the medians; a lost lease or job in any run breaks one."""
    cpu = middle(trials, lambda trial: trial.cpu_ms_per_job)
    ended = min(trial.ended for trial in trials)
    lost = max(trial.leases_lost for trial in trials)
    every = [least("jobs that ended with a result", ended, scenario.jobs), most("leases lost to load", lost, 0)]
    busy = max(trial.others_cores for trial in trials)
    blur = f"others used {busy:.2f} cores" if busy > MOST_OTHERS_CORES else ""
    if scenario is QUICK:
        pace = middle(trials, lambda trial: trial.jobs_per_second)
        return [*every, least("jobs per second", pace, 100, blur), most("worker CPU, ms per job", cpu, 10)]
    return [
        *every,
        most("all done after, s", middle(trials, lambda trial: trial.wall_seconds), 16, blur),
        under("worker CPU, ms per job", cpu, 45),
        least("in flight together", middle(trials, lambda trial: trial.in_flight), scenario.jobs),
        under("MB per job in flight", middle(trials, lambda trial: trial.mb_per_job), 1),
    ]


if __name__ == "__main__":
    sys.exit(main())
