"""`python -m tests.chaos`: many jobs through many faults, then the ledger."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.chaos.audit import table
from tests.chaos.director import Plan, Report, run


def main() -> int:
    """0 when every promise was kept in every round, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=500, help="at least so many, beside requests that join (default: 500)"
    )
    parser.add_argument("--faults", type=int, default=110, help="at least so many (default: 110)")
    parser.add_argument("--rounds", type=int, default=1, help="one after the other, each with its own seed")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's plan")
    parser.add_argument("--max-minutes", type=float, default=20.0, help="of one round")
    parser.add_argument("--keep-going", action="store_true", help="do not stop after a round that failed")
    told = parser.parse_args()
    good = 0
    for number in range(told.rounds):
        seed = secrets.randbelow(10**6) if told.seed is None else told.seed + number
        print(f"round {number + 1} of {told.rounds}: seed {seed}", flush=True)
        plan = Plan(seed=seed, jobs=told.jobs, faults=told.faults, max_seconds=told.max_minutes * 60)
        report = run(plan, lambda text: print(text, flush=True))
        print(shown(report), flush=True)
        good += report.is_good
        if not report.is_good and not told.keep_going:
            break
    print(f"{good} of {told.rounds} rounds kept every promise", flush=True)
    return 0 if good == told.rounds else 1


def shown(report: Report) -> str:
    """The faults by kind, then the ledger."""
    faults = "\n".join(f"{count:4} x {kind}" for kind, count in sorted(report.kinds.items()))
    total = f"{sum(report.kinds.values())} faults, {report.jobs} jobs, {report.seconds:.0f} s"
    return f"{faults}\n{total}\n\n{table(report.lines)}"


if __name__ == "__main__":
    sys.exit(main())
