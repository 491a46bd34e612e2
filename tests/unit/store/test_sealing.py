"""Bodies under keys: nothing of them can be read without, old keys go on reading, and damage is told."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from compaction import errors
from compaction.core.body_keys import BodyKey, parse_body_keys
from compaction.settings import SettingsError, settings_from
from compaction.store import bodies
from compaction.store.sealed_text import SealedText

FIRST, SECOND = BodyKey("k1", b"1" * 32), BodyKey("k2", b"2" * 32)
SECRET = b"the words of a session, again and again: the words of a session " * 40
MUST = {"COMPACTD_DATABASE_URL": "postgresql+psycopg://x", "COMPACTD_REDIS_URL": "redis://x"}


@pytest.fixture(autouse=True)
def without_keys_afterwards() -> Iterator[None]:
    yield
    bodies.use_keys(())


@given(st.binary(max_size=5_000))
def test_what_is_sealed_comes_back_byte_for_byte(data: bytes) -> None:
    bodies.use_keys([FIRST])
    stored = bodies.pack(data)
    assert stored[:4] == b"\x02\x02k1"
    assert bodies.unpack(stored) == data


@pytest.mark.parametrize("data", [b"short secret", SECRET])
def test_nothing_of_it_can_be_read(data: bytes) -> None:
    bodies.use_keys([FIRST])
    stored = bodies.pack(data)
    assert not any(data[place : place + 8] in stored for place in range(len(data) - 8))
    assert bodies.pack(data) != stored  # not even that two bodies are equal
    assert len(bodies.pack(SECRET)) < len(SECRET) / 4  # and it is compressed before


def test_the_first_key_writes_and_all_read() -> None:
    bodies.use_keys([FIRST])
    old = bodies.pack(SECRET)
    bodies.use_keys([SECOND, FIRST])
    new = bodies.pack(SECRET)
    assert (old[2:4], new[2:4]) == (b"k1", b"k2")
    assert bodies.unpack(old) == bodies.unpack(new) == SECRET
    bodies.use_keys([SECOND])
    with pytest.raises(errors.Internal, match="COMPACTD_BODY_KEYS"):
        bodies.unpack(old)


def test_what_was_written_before_keys_were_set_is_read() -> None:
    plain = bodies.pack(SECRET)
    bodies.use_keys([FIRST])
    assert bodies.unpack(plain) == SECRET


def test_without_any_key_a_sealed_body_says_what_is_missing() -> None:
    bodies.use_keys([FIRST])
    stored = bodies.pack(SECRET)
    bodies.use_keys(())
    with pytest.raises(errors.Internal, match="COMPACTD_BODY_KEYS is not set"):
        bodies.unpack(stored)


def test_a_key_of_the_same_name_and_another_value_opens_nothing() -> None:
    bodies.use_keys([FIRST])
    stored = bodies.pack(SECRET)
    bodies.use_keys([BodyKey("k1", b"x" * 32)])
    with pytest.raises(errors.Internal, match="cannot be decrypted"):
        bodies.unpack(stored)


@given(st.data())
def test_any_damage_is_noticed(data: st.DataObject) -> None:
    bodies.use_keys([FIRST])
    stored = bytearray(bodies.pack(b"a short body"))
    place = data.draw(st.integers(0, len(stored) - 1))
    stored[place] ^= data.draw(st.integers(1, 255))
    damaged = bytes(stored)
    if place == 0 and damaged[0] == 0:
        return  # it says now that it is plain
    with pytest.raises(errors.Internal):
        bodies.unpack(damaged)
    for end in range(1, len(stored)):
        with pytest.raises(errors.Internal):
            bodies.unpack(bodies.pack(b"a short body")[:end])


@pytest.mark.parametrize("text", ["", "keep the ticket numbers", "sealed:", "sealed:bm90IG91cnM=", "ünïcødé 😀"])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_text_column_keeps_every_text(text: str, *, sealed: bool) -> None:
    column, postgres = SealedText(), create_engine("postgresql+psycopg://x").dialect
    bodies.use_keys([FIRST] if sealed else [])
    stored = column.process_bind_param(text, postgres)
    assert stored is not None
    assert column.process_result_value(stored, postgres) == text
    assert not (sealed and text and text in stored.removeprefix("sealed:"))
    bodies.use_keys([SECOND, FIRST])
    assert column.process_result_value(stored, postgres) == text
    assert column.process_bind_param(None, postgres) is None
    assert column.process_result_value(None, postgres) is None


def encoded(size: int) -> str:
    return base64.b64encode(b"k" * size).decode()


def test_keys_are_told_by_the_setting_in_their_order() -> None:
    settings = settings_from(MUST | {"COMPACTD_BODY_KEYS": f"new:{encoded(32)}, old-1:{encoded(32)}"})
    assert [key.id for key in settings.body_keys] == ["new", "old-1"]
    assert settings.body_keys[0].secret == b"k" * 32
    assert encoded(32) not in repr(settings)
    assert "kkkk" not in repr(settings.body_keys)
    assert settings_from(MUST).body_keys == ()
    assert parse_body_keys(settings.body_keys) == settings.body_keys


@pytest.mark.parametrize(
    "value",
    [
        encoded(32),
        f":{encoded(32)}",
        f"k1:{encoded(16)}",
        f"k1:{encoded(33)}",
        "k1:",
        "k1:hunter2!",
        f"k 1:{encoded(32)}",
        f"{'k' * 33}:{encoded(32)}",
        f"k1:{encoded(32)},k1:{encoded(32)}",
    ],
)
def test_a_wrong_key_stops_the_start_and_is_not_quoted(value: str) -> None:
    with pytest.raises(SettingsError, match="COMPACTD_BODY_KEYS") as raised:
        settings_from(MUST | {"COMPACTD_BODY_KEYS": value})
    assert "hunter2" not in str(raised.value)
    assert encoded(16)[:10] not in str(raised.value)
