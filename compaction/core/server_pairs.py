"""Pairs of server tools: a call and its result in one assistant turn, the call first.

A code execution that calls the client's tools gets its result in a later assistant turn: as long as each turn between
has a client call made by it (`caller`), it is waiting and complete. Whatever has no partner is told as text in place.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_not

from compaction.core.block_text import block_text, input_text, name_of
from compaction.core.blocks import text_block
from compaction.core.fields import SERVER_CALLS, ident, is_server_result
from compaction.core.messages import Block
from compaction.core.tool_ids import ToolIds
from compaction.core.turns import Turn, blocks_of

_CLIENTS_OWN = frozenset({"text", "tool_use", "thinking"})  # most turns hold nothing else


@dataclass(slots=True, eq=False)
class _Call:
    """One server call; `alive` when it has its result or may still get it, `sent` the id it is sent with."""

    alive: bool = False
    sent: str = ""


@dataclass(slots=True)
class _Pairing:
    """Which call a block is or answers (`calls`), which made it (`makers`), by turn and place; None: no such call."""

    calls: dict[tuple[int, int], _Call | None] = field(default_factory=dict)
    makers: dict[tuple[int, int], _Call | None] = field(default_factory=dict)
    waiting: dict[str, deque[_Call]] = field(default_factory=dict)

    def read(self, number: int, blocks: Sequence[Block]) -> None:
        """Pairs the blocks of one assistant turn; what stays open without a client call made by it is dead."""
        working: set[str] = set()
        for place, block in enumerate(blocks):
            kind, maker = block["type"], _maker(block)
            if maker is not None:
                self.makers[number, place] = made_by = self._newest(maker)
                working |= {maker} if kind == "tool_use" and made_by is not None else set()
            if kind in SERVER_CALLS:
                self.calls[number, place] = call = _Call()
                self.waiting.setdefault(ident(block.get("id")), deque()).append(call)
            elif is_server_result(kind):
                self.calls[number, place] = self._answered(ident(block.get("tool_use_id")))
        self.waiting = {key: calls for key, calls in self.waiting.items() if key in working}

    def finish(self) -> None:
        """What is waiting at the end may still get its result."""
        for calls in self.waiting.values():
            for call in calls:
                call.alive = True

    def _newest(self, key: str) -> _Call | None:
        calls = self.waiting.get(key)
        return calls[-1] if calls else None

    def _answered(self, key: str) -> _Call | None:
        calls = self.waiting.get(key)
        if not calls:
            return None
        call = calls.popleft()
        call.alive = True
        return call


def pair_server_calls(turns: Sequence[Turn], ids: ToolIds, tally: Counter[str]) -> list[Turn]:
    """The turns with complete pairs of server tools only; turns without any are the same objects."""
    if not _concern_servers(turns):
        return list(turns)
    pairing = _Pairing()
    for number, turn in enumerate(turns):
        if turn["role"] == "assistant":
            pairing.read(number, blocks_of(turn["content"]))
    pairing.finish()
    paired = list(turns)
    for number in sorted({number for number, _ in (*pairing.calls, *pairing.makers)}):
        blocks = blocks_of(turns[number]["content"])
        mended = [_mended(block, (number, place), pairing, ids, tally) for place, block in enumerate(blocks)]
        if any(map(is_not, mended, blocks)):
            paired[number] = {"role": "assistant", "content": mended}
    return paired


def _concern_servers(turns: Sequence[Turn]) -> bool:
    for turn in turns:
        if turn["role"] == "assistant":
            for block in blocks_of(turn["content"]):
                if block["type"] not in _CLIENTS_OWN or "caller" in block:
                    return True
    return False


def _mended(block: Block, key: tuple[int, int], pairing: _Pairing, ids: ToolIds, tally: Counter[str]) -> Block:
    if key in pairing.makers:
        block = _with_maker(block, pairing.makers[key], tally)
    if key not in pairing.calls:
        return block
    call = pairing.calls[key]
    if call is None or not call.alive:
        tally["server_blocks_turned_to_text"] += 1
        return text_block(_told(block))
    if block["type"] not in SERVER_CALLS:
        return block if block["tool_use_id"] == call.sent else {**block, "tool_use_id": call.sent}
    stored = block.get("id")
    call.sent = ids.claim(ident(stored), server=block["type"] == "server_tool_use")
    tally["tool_ids_renamed"] += stored != call.sent
    return block if stored == call.sent else {**block, "id": call.sent}


def _with_maker(block: Block, maker: _Call | None, tally: Counter[str]) -> Block:
    """The block with a `caller` that names a call of this request, or with none."""
    caller = block["caller"]
    if maker is None or not maker.alive:
        tally["fields_dropped"] += 1
        return {key: value for key, value in block.items() if key != "caller"}
    return block if caller["tool_id"] == maker.sent else {**block, "caller": {**caller, "tool_id": maker.sent}}


def _maker(block: Block) -> str | None:
    """The id of the server call that made this one, None for blocks that the model made itself."""
    caller = block.get("caller")
    maker = caller.get("tool_id") if isinstance(caller, dict) else None
    return maker if isinstance(maker, str) else None


def _told(block: Block) -> str:
    if block["type"] in SERVER_CALLS:
        return f"[{name_of(block)} was called on the server; no result was recorded] {input_text(block)}"
    return block_text(block) or f"[{block['type']} without content]"
