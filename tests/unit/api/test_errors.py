from __future__ import annotations

from collections.abc import Iterator

from api.errors import MAX_NAME_CHARS, STATUS, printable
from compaction import errors
from compaction.errors import CompactdError, RequestError


def family(root: type[CompactdError]) -> Iterator[type[CompactdError]]:
    yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_every_error_that_a_caller_can_meet_has_a_status() -> None:
    codes = {kind.code for kind in family(RequestError) if kind.__module__ == errors.__name__}
    assert codes <= set(STATUS)


def test_a_name_that_the_caller_made_up_is_repeated_short_and_harmless() -> None:
    assert printable("colour") == "colour"
    assert printable("a\x1b[31m\0\ud800") == "a\N{REPLACEMENT CHARACTER}[31m" + 2 * "\N{REPLACEMENT CHARACTER}"
    assert len(printable("x" * 10_000)) == MAX_NAME_CHARS + 1
