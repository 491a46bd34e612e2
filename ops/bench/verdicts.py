"""Promises of a bench and whether a measurement keeps them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise: what was measured, the bound, and what blurs the measurement, if anything."""

    promise: str
    measured: float
    bound: float
    is_met: bool
    blur: str = ""

    def line(self) -> str:
        """For people."""
        word = "met    " if self.is_met else "NOT MET"
        note = f"  ({self.blur})" if self.blur else ""
        return f"{word}  {self.promise}: {self.measured:.4g}, bound {self.bound:g}{note}"


def most(promise: str, measured: float, bound: float, blur: str = "") -> Verdict:
    """Kept when no more than `bound` was measured."""
    return Verdict(promise, measured, bound, measured <= bound, blur)


def under(promise: str, measured: float, bound: float, blur: str = "") -> Verdict:
    """Kept when less than `bound` was measured."""
    return Verdict(promise, measured, bound, measured < bound, blur)


def least(promise: str, measured: float, bound: float, blur: str = "") -> Verdict:
    """Kept when at least `bound` was measured."""
    return Verdict(promise, measured, bound, measured >= bound, blur)


def told(verdicts: Sequence[Verdict]) -> int:
    """Prints a line for each; the exit code of the bench."""
    for verdict in verdicts:
        sys.stdout.write(verdict.line() + "\n")
    return 0 if all(verdict.is_met for verdict in verdicts) else 1
