"""Hypothesis strategies for histories as real and hostile producers store them.

`histories()` gives tuples of Message: half of them are soups of odd blocks, half are sessions as agents write them with
rows taken out, repeated, swapped or replaced. Ids, uuids and texts come from small pools, so that they meet.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from hypothesis import strategies as st

from compaction.core.messages import Message, message_from

Body = dict[str, Any]

ODD_TEXTS = [
    "",
    " ",
    "\n\t",
    "\0",
    "a\0b",
    "\ud83d",
    "x\udc00y",
    "\ud83d\ude00",
    "\u00a0",
    "~~~~~~",
    "~" * 40 + " ~~~~ user",
]
PLAIN_TEXTS = [
    "Fix the test.",
    "Done: 3 files.",
    "def f(x):\n    return {x: 1}",
    "检查日志",
    "ファイル",
    "🙂 ok",
    "naïve café",
    "لا",
]
TOOL_IDS = [
    "toolu_1",
    "toolu_2",
    "toolu_3",
    "call_0",
    "call_0_2",
    "functions.Bash:0",
    "functions_Bash_0",
    "",
    "id\0",
    None,
    7,
]
SERVER_IDS = ["srvtoolu_1", "srvtoolu_2", "srvtoolu-3", "srvtoolu_x-y", "toolu_1", None]
TOOL_NAMES = ["Read", "Bash", "mcp__files__read", "functions.Bash", "", " ", None, "n" * 200]
API_IDS = [None, None, "msg_1", "msg_2", "msg_3"]
UUIDS = [None, None, None, "u-1", "u-2", "u-3"]

texts = st.one_of(st.sampled_from(PLAIN_TEXTS), st.sampled_from(ODD_TEXTS), st.text(max_size=12))
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats())
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
tool_ids = st.sampled_from(TOOL_IDS)
server_ids = st.sampled_from(SERVER_IDS)
marks = st.just({"type": "ephemeral"})
sources = st.one_of(
    st.just({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}),
    st.just({"type": "text", "media_type": "text/plain", "data": "a plain document"}),
    st.just({"type": "url", "url": "https://example.org/a.png"}),
    st.none(),
    st.just("not a source"),
)


def _block(
    kind: str, required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Body]:
    extras = {"cache_control": marks, "index": st.integers(0, 3)}
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional={**extras, **optional})


citations = st.lists(
    st.just({"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None, "file_id": None}),
    max_size=1,
)
text_blocks = _block("text", {"text": texts}, citations=citations)
odd_text_blocks = st.one_of(_block("text", {}), _block("text", {"text": scalars}))
images = _block("image", {"source": sources})
documents = _block("document", {"source": sources}, title=texts)
thinking = st.one_of(
    _block("thinking", {"thinking": texts, "signature": st.sampled_from(["SIG", ""])}),
    _block("redacted_thinking", {"data": st.just("XYZ")}),
)
odd_inputs = st.sampled_from(
    [
        None,
        "not an object",
        [1, 2],
        {"v": math.nan},
        {"v": [math.inf]},
        {"a\0": 1, "a\ufffd": 2},
        {"deep": {"half": "\udc00"}},
        7,
    ]
)
inputs = st.one_of(st.just({"path": "a.py"}), odd_inputs, st.dictionaries(texts, values, max_size=2))
callers = st.one_of(
    server_ids.map(lambda ident: {"type": "code_execution_20250825", "tool_id": ident}),
    st.just({"type": "direct"}),
    st.none(),
    st.just("direct"),
)
calls = _block(
    "tool_use", {"id": tool_ids, "name": st.sampled_from(TOOL_NAMES), "input": inputs}, caller=callers, text=st.none()
)
inner_blocks = st.one_of(
    text_blocks,
    odd_text_blocks,
    images,
    documents,
    thinking,
    calls,
    _block("tool_reference", {"tool_name": st.just("Read")}),
    values,
)
result_contents = st.one_of(texts, st.lists(inner_blocks, max_size=3), values)
results = _block(
    "tool_result",
    {"tool_use_id": tool_ids},
    content=result_contents,
    is_error=st.one_of(st.booleans(), st.none(), st.just(1)),
)
server_calls = st.one_of(
    _block("server_tool_use", {"id": server_ids, "name": st.just("web_search"), "input": inputs}, caller=callers),
    _block("mcp_tool_use", {"id": server_ids, "name": st.just("find"), "input": inputs, "server_name": st.just("s")}),
)
server_results = st.one_of(
    _block("web_search_tool_result", {"tool_use_id": server_ids, "content": st.just([])}, caller=callers),
    _block("code_execution_tool_result", {"tool_use_id": server_ids, "content": st.just({"type": "x", "text": "out"})}),
    _block("mcp_tool_result", {"tool_use_id": server_ids, "content": st.just("found")}, is_error=st.booleans()),
)
other_blocks = st.one_of(
    _block("container_upload", {"file_id": st.just("file_1")}),
    _block("compaction", {"content": st.sampled_from(["what was before", "", None])}, signature=st.just("SIG")),
    _block("hologram", {"depth": values}),
    _block("search_result", {"source": st.just("s"), "title": st.just("t"), "content": st.just([])}),
)
assistant_blocks = st.one_of(text_blocks, calls, calls, thinking, server_calls, server_results)
user_blocks = st.one_of(text_blocks, results, results, images, documents)
any_blocks = st.one_of(assistant_blocks, user_blocks, odd_text_blocks, other_blocks)


def usages() -> st.SearchStrategy[Body | None]:
    """Usage objects, some absent, some zero."""
    counts = st.sampled_from([0, 3, 1_000, 50_000])
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    return st.one_of(st.none(), st.fixed_dictionaries(dict.fromkeys(names, counts)))


@st.composite
def soups(draw: st.DrawFn) -> Body:
    """One message body of blocks that may make no sense together."""
    role = draw(st.sampled_from(["user", "assistant", "assistant", "user", "system"]))
    own = assistant_blocks if role == "assistant" else user_blocks
    content = draw(st.one_of(texts, st.lists(st.one_of(own, own, own, any_blocks), max_size=4)))
    return draw(_enveloped(role, content))


def _enveloped(role: str, content: str | list[Body]) -> st.SearchStrategy[Body]:
    flags = {
        name: st.sampled_from([False] * 9 + [True])
        for name in ("is_meta", "is_sidechain", "partial", "is_compact_summary")
    }
    return st.fixed_dictionaries(
        {
            "role": st.just(role),
            "content": st.just(content),
            "uuid": st.sampled_from(UUIDS),
            "api_message_id": st.sampled_from(API_IDS) if role == "assistant" else st.none(),
            "usage": usages() if role == "assistant" else st.none(),
            **flags,
        }
    )


@st.composite
def sessions(draw: st.DrawFn) -> list[Body]:
    """A session as an agent writes it: requests, answers in fragments, parallel calls, results, a last answer."""
    bodies: list[Body] = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            bodies.append({"role": "user", "content": draw(st.sampled_from(PLAIN_TEXTS)), "uuid": f"q-{number}"})
        idents = [f"toolu_{number}_{place}" for place in range(draw(st.integers(0, 3)))]
        bodies += draw(_rounds(number, idents))
    return bodies


@st.composite
def _rounds(draw: st.DrawFn, number: int, idents: list[str]) -> list[Body]:
    answer = {"role": "assistant", "api_message_id": draw(st.sampled_from([f"msg_{number}", f"msg_{number}", None]))}
    uses = [{"type": "tool_use", "id": ident, "name": "Read", "input": {"path": ident}} for ident in idents]
    replies = [{"type": "tool_result", "tool_use_id": ident, "content": f"content of {ident}"} for ident in idents]
    if draw(st.booleans()):
        blocks = [{"type": "text", "text": f"Step {number}."}, *uses]
        return [{**answer, "content": blocks}, *([{"role": "user", "content": replies}] if replies else [])]
    bodies: list[Body] = [{**answer, "content": [{"type": "text", "text": f"Step {number}."}], "uuid": f"a-{number}"}]
    for use, reply in zip(uses, replies, strict=True):
        bodies += [{**answer, "content": [use]}, {"role": "user", "content": [reply]}]
    return bodies


@st.composite
def damaged_sessions(draw: st.DrawFn) -> list[Body]:
    """A session with rows taken out, repeated, swapped or replaced by soup."""
    bodies = draw(sessions())
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(bodies) - 1))
        match draw(st.sampled_from(["drop", "repeat", "swap", "soup", "late"])):
            case "drop" if len(bodies) > 1:
                del bodies[place]
            case "repeat":
                bodies.insert(place, bodies[place])
            case "swap":
                bodies[place], bodies[-1] = bodies[-1], bodies[place]
            case "late":
                bodies.append(bodies.pop(place))
            case _:
                bodies[place] = draw(soups())
    return bodies


def histories() -> st.SearchStrategy[tuple[Message, ...]]:
    """Histories of 0 to about 20 messages, as stored."""
    bodies = st.one_of(st.lists(soups(), max_size=8), damaged_sessions())
    return bodies.map(_as_messages)


def _as_messages(bodies: list[Body]) -> tuple[Message, ...]:
    """As a store loads them: no two messages share an object."""
    return tuple(message_from(body, seq=place + 1) for place, body in enumerate(map(copy.deepcopy, bodies)))


BOUNDARY = {"role": "system", "content": "", "uuid": "b-1", "metadata": {"kind": "compact_boundary"}}
ATTACHMENT = {
    "role": "user",
    "content": [{"type": "text", "text": "Files."}],
    "is_meta": True,
    "metadata": {"kind": "compact_attachment", "attachment": "files"},
}


@st.composite
def clean_sessions(draw: st.DrawFn) -> tuple[Message, ...]:
    """A session as an agent writes it, perhaps with an open call at its end.

    Ids are unique, every message has a uuid and hangs on the one before; some answers begin with thinking of their own.
    """
    bodies: list[Body] = []
    for body in draw(sessions()):
        if body["role"] == "assistant" and draw(st.booleans()):
            thought = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}
            bodies.append({**body, "content": [thought]})
        bodies.append(body)
    if draw(st.booleans()):
        call = {"type": "tool_use", "id": "toolu_open", "name": "Bash", "input": {}}
        bodies.append({"role": "assistant", "content": [call], "api_message_id": "msg_open"})
    return tuple(
        message_from(
            {
                **body,
                "uuid": f"m-{place}",
                "parent_uuid": f"m-{place - 1}" if place else None,
                "created_at": "2026-11-30T10:00:00Z",
            },
            seq=place + 1,
        )
        for place, body in enumerate(bodies)
    )


@st.composite
def live_views(draw: st.DrawFn, parts: st.SearchStrategy[tuple[Message, ...]] | None = None) -> tuple[Message, ...]:
    """A history as it is loaded: perhaps behind a boundary with its summary, what that kept, and attachments.

    The summary may stand before older messages, as after a compaction of scope `from`.
    """
    recent = draw(parts if parts is not None else histories())
    if not draw(st.booleans()):
        return recent
    earlier = draw(st.integers(0, 5))
    summary: Body = {"role": "user", "content": "What was before.", "uuid": "s-1", "is_compact_summary": True}
    if earlier:
        summary["metadata"] = {"kind": "compact_summary", "earlier_messages": earlier}
    kept = [{"role": role, "content": f"old {place}", "uuid": f"k-{place}"} for place, role in enumerate(OLD_ROLES)]
    bodies = [BOUNDARY, summary, *kept[:earlier], *([ATTACHMENT] if draw(st.booleans()) else [])]
    return (*map(message_from, bodies), *recent)


OLD_ROLES = ["user", "assistant", "user", "assistant", "user"]
