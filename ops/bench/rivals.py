"""Plain arq and taskiq as contenders, in an environment of their own: arq wants an older redis client than we do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from compaction.core import jsonbytes
from ops.bench.load import Load
from ops.bench.meter import Meter
from ops.bench.provider import most_in_flight
from ops.bench.rig import ROOT, Rig
from ops.bench.transcripts import transcript
from ops.bench.trial import BYTES, KINDS, MESSAGES, PATIENCE_SECONDS, START_SECONDS, Scenario, Trial
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import wait_until

VENV = ROOT / ".cache" / "bench"
PYTHON = VENV / "bin" / "python"
PLAIN = ROOT / "ops" / "bench" / "plain"
NAMES = ("arq", "taskiq")
DATABASE = 1  # of Redis; compactd has the first one

_TABLES = """
    CREATE TABLE IF NOT EXISTS plain_messages (kind int, seq int, body text, PRIMARY KEY (kind, seq));
    CREATE TABLE IF NOT EXISTS plain_results (
        run int, session int, text text, input_tokens int, started_at timestamptz,
        ended_at timestamptz DEFAULT clock_timestamp(), PRIMARY KEY (run, session)
    );
"""
_ENDED = "SELECT count(*) FROM plain_results WHERE run = %s"
_TOLD = """
    SELECT extract(epoch FROM max(ended_at)), extract(epoch FROM max(ended_at) - min(started_at))
    FROM plain_results WHERE run = %s
"""


def install() -> None:
    """Makes the environment from the dependency group `bench` unless it stands; needs the package index."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["bench"]
    made = VENV / ".made"
    if made.exists() and made.read_text() == repr(wanted):
        return
    print("Setting up arq and taskiq in .cache/bench (once) ...", file=sys.stderr, flush=True)
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(VENV)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
    made.write_text(repr(wanted))


class Rival:
    """A plain worker that stays for all runs."""

    def __init__(self, rig: Rig, name: str, process: Process) -> None:
        self.name = f"plain {name}"
        self._rig = rig
        self._program = f"{name}_queue.py"
        self._pid = process.pid
        self._idle_bytes = Meter(self._pid).rss_bytes()

    def play(self, scenario: Scenario) -> Trial:
        """Enqueues all jobs at once, waits for the last one."""
        self._rig.provider.play(latency_seconds=scenario.latency_seconds, deltas=scenario.deltas)
        with psycopg.connect(self._rig.postgres.url(), autocommit=True) as connection:
            run = _number(connection, "SELECT coalesce(max(run), 0) + 1 FROM plain_results")
            load = Load.begin(self._pid, self._idle_bytes)
            began = self._enqueue(run, scenario.jobs)
            if not wait_until(
                lambda: _number(connection, _ENDED, run) == scenario.jobs, PATIENCE_SECONDS, pause_seconds=0.2
            ):
                raise RuntimeError(f"{self.name}: the jobs did not end.")
            used = load.end()
            told = connection.execute(_TOLD, (run,)).fetchone()
        assert told is not None  # noqa: S101 - an aggregate has a row
        return Trial(
            jobs=scenario.jobs,
            ended=scenario.jobs,
            wall_seconds=float(told[0]) - began,
            work_seconds=float(told[1]),
            cpu_seconds=used.cpu_seconds,
            growth_bytes=used.growth_bytes,
            in_flight=most_in_flight(self._rig.provider.calls()),
            leases_lost=0,
            others_cores=used.others_cores,
        )

    def _enqueue(self, run: int, jobs: int) -> float:
        arguments = [str(PYTHON), self._program, "enqueue", str(run), str(jobs), str(KINDS)]
        done = subprocess.run(
            arguments, cwd=PLAIN, env=_environ(self._rig, ""), capture_output=True, text=True, check=True
        )
        return float(done.stdout)


@contextmanager
def rival(rig: Rig, name: str) -> Iterator[Rival]:
    """The contender with its worker. Call `install` before."""
    _fill(rig)
    ready = rig.folder / f"{name}.ready"
    command = Command(
        name=name,
        arguments=(str(PYTHON), f"{name}_queue.py", "work"),
        folder=PLAIN,
        log=rig.folder / f"{name}.log",
        environ=_environ(rig, str(ready)),
    )
    process = Process(command)
    try:
        if not wait_until(ready.exists, START_SECONDS):
            raise RuntimeError(f"{name} did not start: {(rig.folder / f'{name}.log').read_text()[-1000:]}")
        yield Rival(rig, name, process)
    finally:
        process.stop()


def _environ(rig: Rig, ready_file: str) -> dict[str, str]:
    return rig.environ() | {
        "PLAIN_DATABASE_URL": rig.postgres.url(),
        "PLAIN_REDIS_URL": rig.valkey.url(DATABASE),
        "PLAIN_READY_FILE": ready_file,
    }


def _fill(rig: Rig) -> None:
    """The same transcripts as compactd has, as rows of text."""
    with psycopg.connect(rig.postgres.url(), autocommit=True) as connection:
        connection.execute(_TABLES)
        if _number(connection, "SELECT count(*) FROM plain_messages"):
            return
        for kind in range(KINDS):
            bodies = transcript(kind + 1, messages=MESSAGES, size_bytes=BYTES)
            rows = [(kind, seq, jsonbytes.encode(jsonbytes.decode(body)).decode()) for seq, body in enumerate(bodies)]
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO plain_messages VALUES (%s, %s, %s)", rows)


def _number(connection: psycopg.Connection[tuple[int, ...]], statement: str, *values: int) -> int:
    row = connection.execute(statement.encode(), values).fetchone()
    return 0 if row is None else row[0]
