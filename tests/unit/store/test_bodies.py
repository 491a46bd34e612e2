"""Bodies come back byte for byte, whatever they are and whoever packs them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import errors
from compaction.store import bodies


@given(st.binary(max_size=5000))
def test_what_was_packed_comes_back(data: bytes) -> None:
    assert bodies.unpack(bodies.pack(data)) == data


@given(st.binary(min_size=1, max_size=20), st.integers(min_value=100, max_value=2000))
def test_what_repeats_comes_back_too(part: bytes, times: int) -> None:
    assert bodies.unpack(bodies.pack(part * times)) == part * times


def test_a_small_body_is_stored_as_it_is() -> None:
    assert bodies.pack(b"hello") == b"\x00hello"


def test_a_large_body_that_repeats_is_compressed() -> None:
    stored = bodies.pack(b'{"role":"user"}' * 1000)
    assert stored[:1] == b"\x01"
    assert len(stored) < 200


def test_a_large_body_that_does_not_shrink_is_stored_as_it_is() -> None:
    noise = bytes(range(256)) * 4 + bytes(reversed(range(256)))  # each byte value as often as the others
    assert len(bodies.pack(noise)) <= len(noise) + 1


@pytest.mark.parametrize(
    "stored", [b"", b"\x02encrypted some day", b"\xff", b"\x01", b"\x01not a frame", bodies.pack(b"x" * 5000)[:-5]]
)
def test_what_this_version_cannot_read_is_an_internal_error(stored: bytes) -> None:
    with pytest.raises(errors.Internal):
        bodies.unpack(stored)


def test_many_threads_at_once_get_their_own_bodies_back() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        data = b"%d " % number * 3000
        wrong.extend(number for _ in range(50) if bodies.unpack(bodies.pack(data)) != data)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
