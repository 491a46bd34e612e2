from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from sqlalchemy.dialects import postgresql

from compaction.core.body_keys import parse_body_keys
from compaction.errors import Internal
from compaction.store import bodies
from compaction.store.sealed_text import UNREADABLE, SealedText, readable

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there
FIRST, SECOND = (f"{name}:{base64.b64encode(name.encode() * 16).decode()}" for name in ("k1", "k2"))


@pytest.fixture(autouse=True)
def keys() -> Iterator[None]:
    yield
    bodies.use_keys(())


def stored(value: str) -> str:
    """What lies in the column when it is written with the first key."""
    bodies.use_keys(parse_body_keys(FIRST))
    found = SealedText().process_bind_param(value, DIALECT)
    assert found is not None
    assert value not in found
    return found


@pytest.mark.parametrize("known", ["", SECOND])
def test_a_text_whose_key_is_missing_says_so_and_hides_no_other(known: str) -> None:
    sealed = stored("Keep the plan.")
    bodies.use_keys(parse_body_keys(known))
    assert SealedText().process_result_value(sealed, DIALECT) is UNREADABLE
    assert SealedText().process_result_value("in the clear", DIALECT) == "in the clear"
    bodies.use_keys(parse_body_keys(f"{SECOND},{FIRST}"))
    assert SealedText().process_result_value(sealed, DIALECT) == "Keep the plan."


def test_what_stands_for_it_is_neither_acted_upon_nor_stored() -> None:
    with pytest.raises(Internal, match="COMPACTD_BODY_KEYS"):
        readable(UNREADABLE)
    with pytest.raises(Internal, match="COMPACTD_BODY_KEYS"):
        SealedText().process_bind_param(UNREADABLE, DIALECT)
    assert readable("Keep the plan.") == "Keep the plan."
    assert readable(None) is None
