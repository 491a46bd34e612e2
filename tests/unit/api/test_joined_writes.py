from __future__ import annotations

import asyncio

import pytest

from api.joined_writes import MAX_HELD_BYTES, JoinedWrites

pytestmark = pytest.mark.anyio


class Wire(asyncio.Transport):
    """Remembers each write as the system call that it would be."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True


def joined() -> tuple[Wire, JoinedWrites]:
    wire = Wire()
    return wire, JoinedWrites(wire, asyncio.get_running_loop())


async def test_what_is_written_in_one_turn_is_sent_as_one() -> None:
    wire, writes = joined()
    writes.write(b"head")
    writes.write(b"body")
    assert wire.sent == []
    await asyncio.sleep(0)
    assert wire.sent == [b"headbody"]
    writes.write(b"more")
    await asyncio.sleep(0)
    assert wire.sent == [b"headbody", b"more"]


async def test_a_flush_sends_at_once_and_nothing_twice() -> None:
    wire, writes = joined()
    writes.write(b"head")
    writes.flush()
    writes.flush()
    await asyncio.sleep(0)
    assert wire.sent == [b"head"]


async def test_no_more_is_held_than_the_limit() -> None:
    wire, writes = joined()
    writes.write(b"a" * MAX_HELD_BYTES)
    assert wire.sent == []
    writes.write(b"b")
    assert wire.sent == [b"a" * MAX_HELD_BYTES + b"b"]


async def test_what_is_held_is_sent_before_the_end() -> None:
    wire, writes = joined()
    writes.write(b"last")
    writes.close()
    await asyncio.sleep(0)
    assert (wire.sent, wire.closed) == ([b"last"], True)
