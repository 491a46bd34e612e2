"""Bulk runs in words and tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from compaction.cli import output
from compaction.cli.output import Column, number
from compaction.client.bulk import BulkRun

MINUTE_SECONDS = 60
_RUNS = (
    Column("RUN", whole=True),
    Column("STATE", whole=True),
    Column("SESSIONS", whole=True, right=True),
    Column("DONE", whole=True, right=True),
    Column("SPENT", whole=True, right=True),
)
_VERSIONS = (
    Column("", whole=True),
    Column("JOB", whole=True),
    Column("MADE", whole=True),
    Column("STRATEGY", whole=True),
    Column("MODEL", whole=True),
    Column("PROMPT", whole=True, right=True),
    Column("TOKENS", whole=True, right=True),
)
_NEXT = {
    "ready": "compactd bulk resume {id}",
    "sampled": "compactd bulk report {id}, then compactd bulk resume {id}",
    "paused": "compactd bulk resume {id}",
    "ended": "compactd bulk report {id}",
}


def progress(run: BulkRun, seconds: float) -> tuple[str, float | None, str]:
    """What is being done, how much of it, and in words: sessions, tokens, money and how long it may still take."""
    found = run["sessions"]["found"]
    if run["state"] == "planning" or not found:
        return "planning", None, f"{number(found)} sessions"
    done = found - run["request_counts"]["processing"]
    left = f", {_duration(seconds * (found - done) / done)} left" if done and found > done else ""
    money = dollars(run["cost"]["spent_usd"])
    tokens = number(run["tokens"]["used"])
    return run["state"], done / found, f"{number(done)} of {number(found)} sessions, {tokens} tokens, {money}{left}"


def outcome(run: BulkRun) -> str:
    """The state in a word or two."""
    if run["state"] != "ended":
        return run["state"]
    return f"{number(run['request_counts']['succeeded'])} compacted ({run['end_reason']})"


def print_run(run: BulkRun) -> None:
    """One run, for people."""
    counts, cost, tokens = run["request_counts"], run["cost"], run["tokens"]
    pairs: list[tuple[str, str | Text]] = [
        ("Run", run["id"]),
        ("State", run["state"] + (f" ({run['end_reason']})" if run["end_reason"] else "")),
        ("Way", run["way"] + (f". {run['way_note']}" if run["way_note"] else "")),
        ("Sessions", f"{number(run['sessions']['found'])} to compact, {number(run['sessions']['skipped'])} skipped"),
        ("Tokens", f"{number(tokens['found'])} found; {number(tokens['before'])} became {number(tokens['after'])}"),
        ("Estimated", f"{dollars(cost['live_usd'])} live, {dollars(cost['batched_usd'])} in batches"),
        ("Spent", f"{dollars(cost['spent_usd'])}, {number(tokens['used'])} tokens"),
        ("Requests", ", ".join(f"{number(count)} {name}" for name, count in counts.items())),
    ]
    pairs += [
        (name, ", ".join(f"{number(count)} {cause}" for cause, count in causes.items()))
        for name, causes in (("Skipped", run["skipped"]), ("Failed", run["failed"]))
        if causes
    ]
    if run["state"] in _NEXT:
        pairs.append(("Next", _NEXT[run["state"]].format(id=run["id"])))
    output.show(output.facts(pairs))


def print_runs(runs: Sequence[BulkRun]) -> None:
    """A list of runs."""
    if not runs:
        output.say("There are no bulk runs. `compactd bulk SOURCE` makes one.")
        return
    lines = [
        (
            run["id"],
            run["state"],
            number(run["sessions"]["found"]),
            number(run["sessions"]["found"] - run["request_counts"]["processing"]),
            dollars(run["cost"]["spent_usd"]),
        )
        for run in runs
    ]
    output.show(output.rows(_RUNS, lines))


def print_report(report: Mapping[str, Any]) -> None:
    """What a run did, in a few lines; the page has the charts."""
    before, after = report["tokens_before"], report["tokens_after"]
    cost = report["cost"]
    pairs: list[tuple[str, str | Text]] = [
        ("Compacted", f"{number(report['succeeded'])} sessions"),
        ("Before", f"median {number(before['median'])}, largest {number(before['largest'])} tokens"),
        ("After", f"median {number(after['median'])}, largest {number(after['largest'])} tokens"),
        ("Cost", f"{dollars(cost['spent_usd'])}; {dollars(cost['expected_usd'])} were expected"),
    ]
    pairs += [
        (f"By {one['strategy']}", f"{number(one['sessions'])} sessions, {one['ratio']:.0%} of the size is left")
        for one in report["strategies"]
    ]
    pairs += [("Failed", f"{number(one['sessions'])} {one['cause']}") for one in report["failures"]]
    output.show(output.facts(pairs))


def print_versions(told: Mapping[str, Any]) -> None:
    """A session's results, the current one marked."""
    lines = [
        (
            "*" if one["is_current"] else "",
            one["job_id"],
            output.moment(one["created_at"]),
            one["strategy"],
            one["model"] or "–",
            number(one["prompt_version"]),
            number(one["post_tokens"]),
        )
        for one in told["data"]
    ]
    if not lines:
        output.say("The session was never compacted.")
        return
    output.show(output.rows(_VERSIONS, lines))
    if told["current"] is None:
        output.say("None is current: the live view is as the producer stored it.")


def print_line(told: Mapping[str, Any]) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps(told) + "\n")


def dollars(amount: float | None) -> str:
    """`$1.25`; small amounts with more digits."""
    if amount is None:
        return "unknown"
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def _duration(seconds: float) -> str:
    if seconds < MINUTE_SECONDS:
        return f"{seconds:.0f} s"
    minutes = seconds / MINUTE_SECONDS
    return f"{minutes:.0f} min" if minutes < MINUTE_SECONDS else f"{minutes / MINUTE_SECONDS:.1f} h"
