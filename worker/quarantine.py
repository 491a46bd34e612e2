"""Jobs that lost a worker before: which of them may run beside each other in this process.

When a worker dies, nobody knows which of its jobs killed it: all of them have lost one worker. If they came back
together, the guilty one would take the others down again and again, until all had lost as many as a poison job may.
"""

from __future__ import annotations

from compaction.core import jobs


class Quarantine:
    """One per process; used on its loop alone. Tokens of suspects are here from their admission until they leave."""

    def __init__(self) -> None:
        self._suspects: dict[int, int] = {}  # crashes by fencing token

    def admit(self, token: int, crashes: int) -> bool:
        """Whether the job may run here now; a suspect that may is remembered until it leaves."""
        others = self._suspects.values()
        if not jobs.may_join(crashes, suspects=len(others), most_crashes=max(others, default=0)):
            return False
        if crashes:
            self._suspects[token] = crashes
        return True

    def leave(self, token: int) -> None:
        """The job has ended, or never was a suspect."""
        self._suspects.pop(token, None)
