"""What fills a session's window: tokens by kind, role and tool, and files that were read again.

All numbers are estimates of single blocks, beside the count of the whole that the last answer's usage anchors. They say
where the room goes, not what the provider will bill.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from compaction.core import tokens
from compaction.core.block_text import name_of
from compaction.core.exchanges import exchanges
from compaction.core.fields import CALLS, MEDIA, SIGNED, ident, is_server_result
from compaction.core.jsonbytes import Json, canonical
from compaction.core.messages import Block, Message
from compaction.core.rebuilt import is_rebuilt
from compaction.core.recent_files import PART_KEYS, path_of
from compaction.core.tool_table import ToolTable
from compaction.core.turns import distinct

MAX_TOOLS = 100  # listed, the largest; more than a request may declare in practice
MAX_READS = 50  # files listed as read again, those that waste most
UNKNOWN_TOOL = "unknown"  # whose call is not in the window
KINDS = (  # the parts of the whole, in the order of a chart
    "system", "tools", "summary", "attachments", "user", "assistant", "thinking", "requests", "results", "media",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Share:
    """So many messages or blocks, so many estimated tokens."""

    count: int = 0
    tokens: int = 0

    def plus(self, size: int) -> Share:
        """One more of this size."""
        return Share(self.count + 1, self.tokens + size)


@dataclass(frozen=True, slots=True)
class ToolShare:
    """One tool's calls and what they returned."""

    name: str
    requests: Share = Share()
    results: Share = Share()

    @property
    def tokens(self) -> int:
        """Calls and results together."""
        return self.requests.tokens + self.results.tokens


@dataclass(frozen=True, slots=True)
class RepeatedRead:
    """A file of which the same part was read more than once; all its older results are `wasted_tokens`."""

    path: str
    reads: int
    wasted_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analysis of a live view. `tokens` counts the next request, `estimated_tokens` is the sum of `kinds`."""

    window: int
    tokens: int
    anchored: bool
    kinds: Mapping[str, int]
    roles: Mapping[str, Share]
    tools: tuple[ToolShare, ...]
    repeated_reads: tuple[RepeatedRead, ...]

    @property
    def estimated_tokens(self) -> int:
        """The estimate of everything."""
        return sum(self.kinds.values())

    @property
    def percent_of_window(self) -> float:
        """The share of the window that the next request takes; 0 for a window of 0."""
        return round(100 * self.tokens / self.window, 1) if self.window else 0.0

    def to_dict(self) -> dict[str, Json]:
        """The answer of GET /v1/sessions/{id}/context."""
        whole = self.estimated_tokens
        return {
            "window": self.window,
            "tokens": self.tokens,
            "anchored": self.anchored,
            "percent_of_window": self.percent_of_window,
            "estimated_tokens": whole,
            "kinds": [
                {"kind": kind, "tokens": size, "percent": _percent(size, whole)} for kind, size in self.kinds.items()
            ],
            "roles": {role: {"messages": share.count, "tokens": share.tokens} for role, share in self.roles.items()},
            "tools": [_tool_dict(tool, whole) for tool in self.tools],
            "repeated_reads": [
                {"path": read.path, "reads": read.reads, "wasted_tokens": read.wasted_tokens}
                for read in self.repeated_reads
            ],
            "wasted_tokens": sum(read.wasted_tokens for read in self.repeated_reads),
        }


def analyse(
    messages: Sequence[Message], *, system: Json = None, tools: Json = None, window: int, table: ToolTable | None = None
) -> Analysis:
    """The analysis of a live view for a model's window of so many tokens. Linear time."""
    spoken = distinct(messages)
    counted = tokens.session_tokens(messages, system=system, tools=tools)
    sums = _Sums()
    for message in spoken:
        sums.add(message)
    kinds = dict(sums.kinds) | {
        "system": tokens.estimate_overhead(system, None),
        "tools": tokens.estimate_overhead(None, tools),
    }
    used = sorted(sums.tools.values(), key=lambda tool: (-tool.tokens, tool.name))
    return Analysis(
        window=window,
        tokens=counted.tokens,
        anchored=counted.anchored,
        kinds=MappingProxyType({kind: kinds.get(kind, 0) for kind in KINDS}),
        roles=MappingProxyType(dict(sums.roles)),
        tools=tuple(used[:MAX_TOOLS]),
        repeated_reads=_repeated(spoken, table or ToolTable())[:MAX_READS],
    )


class _Sums:
    """What is known while the messages go by."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.roles: dict[str, Share] = {}
        self.tools: dict[str, ToolShare] = {}
        self._names: dict[str, str] = {}  # call id → tool

    def add(self, message: Message) -> None:
        whole = _whole(message)
        size = 0
        for block in message.blocks():
            tokens_of_block = tokens.estimate_block(block)
            size += tokens_of_block
            self.kinds[whole or self._kind(block, message.role, tokens_of_block)] += tokens_of_block
        self.roles[message.role] = self.roles.get(message.role, Share()).plus(size)

    def _kind(self, block: Block, role: str, size: int) -> str:
        kind = block["type"]
        if kind in CALLS:
            name = self._names[ident(block.get("id"))] = name_of(block)
            tool = self.tools.get(name, ToolShare(name))
            self.tools[name] = ToolShare(name, tool.requests.plus(size), tool.results)
            return "requests"
        if kind == "tool_result" or is_server_result(kind):
            name = self._names.get(ident(block.get("tool_use_id")), UNKNOWN_TOOL)
            tool = self.tools.get(name, ToolShare(name))
            self.tools[name] = ToolShare(name, tool.requests, tool.results.plus(size))
            return "results"
        if kind in MEDIA:
            return "media"
        return "thinking" if kind in SIGNED else role


def _whole(message: Message) -> str | None:
    """The kind of a message that is of one kind altogether."""
    if message.is_compact_summary:
        return "summary"
    return "attachments" if is_rebuilt(message) or message.is_meta else None


def _repeated(messages: Sequence[Message], table: ToolTable) -> tuple[RepeatedRead, ...]:
    sizes: defaultdict[str, defaultdict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in exchanges(messages):
        path = path_of(one.call) if table.kind_of_call(one.call) == "Read" else None
        if path is not None:
            part = canonical({key: one.call["input"].get(key) for key in PART_KEYS})
            sizes[path][part].append(tokens.estimate_block(one.result))
    reads = [
        RepeatedRead(path, sum(map(len, parts.values())), sum(sum(part[:-1]) for part in parts.values()))
        for path, parts in sizes.items()
    ]
    again = [read for read in reads if read.wasted_tokens]
    return tuple(sorted(again, key=lambda read: (-read.wasted_tokens, read.path)))


def _tool_dict(tool: ToolShare, whole: int) -> dict[str, Json]:
    return {
        "name": tool.name,
        "requests": tool.requests.count,
        "request_tokens": tool.requests.tokens,
        "results": tool.results.count,
        "result_tokens": tool.results.tokens,
        "tokens": tool.tokens,
        "percent": _percent(tool.tokens, whole),
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
