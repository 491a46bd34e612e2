"""Source files and logs that look like a grown service, put together from templates by a seeded generator."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from string import Template
from typing import Any

from compaction.cli.sample.scenario import data_file, table

Words = Mapping[str, Any]
LOG_STARTED_AT = datetime(2026, 3, 11, 5, 40)  # noqa: DTZ001 - a wall clock inside a made-up log
LOG_GAP_MS = (15, 2_600)  # between two lines
REMEMBERED_INVOICES = 12  # a log speaks of the same few invoices again and again


@dataclass(frozen=True, slots=True)
class Templates:
    """The pieces of templates.txt by their heading."""

    pieces: Mapping[str, tuple[Template, ...]]

    def of(self, heading: str) -> tuple[Template, ...]:
        """All pieces under one heading, in their order."""
        return self.pieces[heading]


@cache
def templates() -> Templates:
    """templates.txt: pieces under lines of the form `=== heading`."""
    found: dict[str, list[Template]] = {}
    for piece in data_file("templates.txt").read_text("utf-8").split("=== ")[1:]:
        heading, _, body = piece.partition("\n")
        found.setdefault(heading.strip(), []).append(Template(body.strip("\n")))
    return Templates({heading: tuple(pieces) for heading, pieces in found.items()})


@cache
def words() -> dict[str, Words]:
    """words.toml."""
    return table("words.toml")


def module_text(rng: random.Random, noun: str, about: str, chars: int) -> str:
    """A module about `noun`: head, entity and functions until it has about `chars` characters."""
    slots = _module_slots(rng, noun) | {"about": about}
    pieces = [_filled(rng, piece, slots) for piece in templates().of("head module")]
    pieces += [_filled(rng, piece, slots) for piece in templates().of("head entity")]
    return _grown(rng, pieces, templates().of("function"), slots, chars)


def tests_text(rng: random.Random, noun: str, chars: int) -> str:
    """A test file for such a module."""
    slots = _module_slots(rng, noun)
    pieces = [_filled(rng, piece, slots) for piece in templates().of("test head")]
    return _grown(rng, pieces, templates().of("test"), slots, chars)


def log_text(rng: random.Random, kind: str, lines: int) -> str:
    """A log of one process; the same invoices and customers come up again and again."""
    return "".join(_log_lines(rng, kind, lines))


def _grown(
    rng: random.Random, pieces: list[str], choices: Sequence[Template], slots: dict[str, str], chars: int
) -> str:
    size = sum(map(len, pieces))
    for piece in rng.sample(choices, len(choices)):
        if size >= chars:
            break
        pieces.append(_filled(rng, piece, slots))
        size += len(pieces[-1]) + 3
    return "\n\n\n".join(pieces) + "\n"


def _module_slots(rng: random.Random, noun: str) -> dict[str, str]:
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", noun).lower()
    plural = f"{snake[:-1]}ies" if snake.endswith("y") else f"{snake}s"
    slots = {slot: rng.choice(choices) for slot, choices in words()["module"].items()}
    package, collaborator = slots["collaborator"].split()
    named = {"noun": noun, "snake": snake, "words": snake.replace("_", " "), "plural": plural, "table": plural}
    return slots | named | {"package": package, "collaborator": collaborator, "Verb": slots["verb"].capitalize()}


def _filled(rng: random.Random, piece: Template, slots: dict[str, str]) -> str:
    own = {slot: rng.choice(choices) for slot, choices in words()["function"].items()}
    return piece.substitute(slots, **own, small=rng.randint(2, 9), limit=rng.choice((50, 120, 250, 500, 990, 1200)))


def _log_lines(rng: random.Random, kind: str, lines: int) -> Iterator[str]:
    vocabulary = words()["log"]
    forms = [Template(form) for form in vocabulary[kind]]
    invoices = [f"inv_{rng.getrandbits(40):010x}" for _ in range(REMEMBERED_INVOICES)]
    clock = LOG_STARTED_AT
    for _ in range(lines):
        clock += timedelta(milliseconds=rng.randint(*LOG_GAP_MS))
        if rng.random() < 0.2:  # noqa: PLR2004 - now and then a new invoice replaces an old one
            invoices[rng.randrange(REMEMBERED_INVOICES)] = f"inv_{rng.getrandbits(40):010x}"
        line = rng.choice(forms).substitute(
            invoice=rng.choice(invoices),
            customer=rng.choice(vocabulary["customer"]),
            job=rng.choice(vocabulary["job"]),
            request=f"{rng.getrandbits(32):08x}",
            attempt=rng.choice((1, 1, 1, 2, 2, 3)),
            small=rng.randint(1, 20),
            ms=rng.randint(40, 4_000),
            wait=rng.randint(5, 1_900),
        )
        yield f"{clock.isoformat(timespec='milliseconds')}Z {line}\n"
