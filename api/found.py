"""Things that a call names: there for the caller's tenant, or a problem that says what to do."""

from __future__ import annotations

from typing import TypeVar

from compaction.errors import NotFound

Thing = TypeVar("Thing")

NO_SESSION = "There is no session of this id. Create it with PUT /v1/sessions/{id}, or import a transcript."
NO_JOB = "There is no job of this id. GET /v1/compactions lists the jobs of this key's tenant."


def found(thing: Thing | None, words: str) -> Thing:
    """`thing` itself. Raises NotFound with `words` when there is none."""
    if thing is None:
        raise NotFound(words)
    return thing
