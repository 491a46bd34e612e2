"""Broken bodies: valid ones of append and import, damaged at random in one place, by bytes or by structure.

`Broken.surely` says that no reader can take the body; the others (a flipped bit, say) may by chance still be valid.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any
Dice = random.Random

NO_MORE: Mapping[str, str] = {}
JSON_TYPE = {"Content-Type": "application/json"}
MESSAGES: list[Json] = [
    {"uuid": "f1", "role": "user", "content": "Why does the build fail? caf\u00e9 \U0001f600"},
    {
        "uuid": "f2",
        "role": "assistant",
        "api_message_id": "msg_1",
        "usage": {"input_tokens": 10, "output_tokens": 3},
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py", "lines": [1, 2.5, None]}},
        ],
    },
    {
        "uuid": "f3",
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1", "is_error": False}],
        "is_meta": False,
        "metadata": {"from": "tool"},
    },
]
WRONG: dict[str, list[Json]] = {  # what must not stand in a message
    "role": ["tool", "", None, 3, {}, ["user"], True, "User"],
    "content": [None, 3, True, {}, [1], ["x"], [{}], [{"type": 3}], [None], [{"type": "text"}, []]],
    "uuid": [3, "", "a b", "x" * 201, "\u00e9", {}, [], "a\n", True],
    "parent_uuid": [3, "", "a b", {}],
    "api_message_id": [3, "", [], "x" * 201],
    "created_at": [3, "", {}],
    "model": [3, "", []],
    "usage": [[], "x", 3, {"input_tokens": -1}, {"output_tokens": 1.5}, {"input_tokens": "3"}, {"input_tokens": True}],
    "is_meta": ["yes", 1, [], {}],
    "is_sidechain": ["no", 0.5],
    "partial": ["", 2],
    "is_compact_summary": ["true", []],
    "metadata": [3, [], "x"],
}
WRONG_OPTIONS: list[Json] = [-1, "3", 1.5, 2**63, True, [], {}, 10**30]
DEEP = 500  # levels; 400 are the limit


@dataclass(frozen=True)
class Broken:
    """One request's body with what belongs to it."""

    how: str
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    surely: bool = True


def broken_append(dice: Dice) -> Broken:
    """A damaged body for POST /v1/sessions/{id}/messages."""
    return dice.choice(_APPENDS)(dice)


def broken_import(dice: Dice) -> Broken:
    """A damaged body for POST /v1/sessions/import."""
    return dice.choice(_IMPORTS)(dice)


def _valid(dice: Dice) -> dict[str, Json]:
    """An append that would be stored, with uuids of its own."""
    messages = copy.deepcopy(MESSAGES)
    mark = f"{dice.getrandbits(64):x}"
    for message in messages:
        message["uuid"] += mark
    return {"messages": messages}


def _encoded(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _append(how: str, content: bytes, headers: Mapping[str, str] = NO_MORE, *, surely: bool = True) -> Broken:
    return Broken(how, content, {**JSON_TYPE, **headers}, {}, surely)


def _cut(dice: Dice) -> Broken:
    body = _encoded(_valid(dice))
    return _append("cut off", body[: dice.randrange(len(body))])


def _followed(dice: Dice) -> Broken:
    return _append("followed", _encoded(_valid(dice)) + dice.choice([b"}", b"x", b"{}", b",", b"\0", b"[]"]))


def _not_utf8(dice: Dice) -> Broken:
    body = _encoded(_valid(dice))
    place = dice.randrange(1, len(body))
    return _append("not UTF-8", body[:place] + dice.choice([b"\xff", b"\xc0\x80", b"\xfe\xfe"]) + body[place:])


def _flipped(dice: Dice) -> Broken:
    body = bytearray(_encoded(_valid(dice)))
    for _ in range(dice.randrange(1, 6)):
        body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
    return _append("flipped bits", bytes(body), surely=False)


def _shuffled(dice: Dice) -> Broken:
    """Two pieces of the body change places."""
    body = _encoded(_valid(dice))
    first, second, third = sorted(dice.sample(range(len(body)), 3))
    return _append("moved pieces", body[:first] + body[second:third] + body[first:second] + body[third:], surely=False)


def _wrong_member(dice: Dice) -> Broken:
    body, name = _valid(dice), dice.choice(sorted(WRONG))
    dice.choice(body["messages"])[name] = dice.choice(WRONG[name])
    return _append(f"wrong {name}", _encoded(body))


def _missing_member(dice: Dice) -> Broken:
    body = _valid(dice)
    del dice.choice(body["messages"])[dice.choice(["role", "content"])]
    return _append("missing member", _encoded(body))


def _wrong_message(dice: Dice) -> Broken:
    body = _valid(dice)
    body["messages"].insert(dice.randrange(4), dice.choice([3, None, "x", [], {}, True]))
    return _append("wrong message", _encoded(body))


def _wrong_top(dice: Dice) -> Broken:
    body: Json = dice.choice(
        [
            _valid(dice) | {"messages": dice.choice([None, {}, "x", 3, True])},
            _valid(dice) | {"expected_seq": dice.choice(WRONG_OPTIONS)},
            _valid(dice) | {"expected_seq": 10**9},  # in its shape, and not where the session is
            _valid(dice) | {dice.choice(["colour", "Messages", "", "\0"]): 1},
            {"messages_": []},
            [],
            [_valid(dice)],
            3,
            None,
            "x",
        ]
    )
    return _append("wrong body", _encoded(body))


def _too_deep(dice: Dice) -> Broken:
    body = _valid(dice)
    body["messages"][dice.randrange(3)]["content"] = [{"type": "text", "text": "MARK"}]
    nest = b"[" * DEEP + b"]" * DEEP if dice.random() < 0.5 else b'{"a":' * DEEP + b"1" + b"}" * DEEP
    return _append("too deep", _encoded(body).replace(b'"MARK"', nest))


def _bad_gzip(dice: Dice) -> Broken:
    packed = gzip.compress(_encoded(_valid(dice)), mtime=0)
    if dice.random() < 0.3:
        return _append("not gzip", _encoded(_valid(dice)), {"Content-Encoding": "gzip"})
    return _append("cut gzip", packed[: dice.randrange(1, len(packed))], {"Content-Encoding": "gzip"})


def _wrong_headers(dice: Dice) -> Broken:
    name, value = dice.choice(
        [("Content-Type", "text/plain"), ("Content-Type", ""), ("Content-Encoding", "br"), ("Idempotency-Key", "")]
    )
    return _append("wrong headers", _encoded(_valid(dice)), {name: value})


_APPENDS: tuple[Callable[[Dice], Broken], ...] = (
    *(_cut, _followed, _not_utf8, _flipped, _flipped, _shuffled, _missing_member, _wrong_message, _wrong_top),
    *(_wrong_member, _wrong_member, _wrong_member, _too_deep, _bad_gzip, _wrong_headers),
)


def _row(number: int, role: str, content: Json) -> Json:
    return {
        "type": role,
        "uuid": f"uuid-{number}",
        "parentUuid": f"uuid-{number - 1}" if number else None,
        "sessionId": "fuzzed",
        "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
        "message": {"role": role, "content": content},
    }


def _log() -> list[bytes]:
    """The lines of a Claude Code log."""
    return [_encoded(_row(number, message["role"], message["content"])) for number, message in enumerate(MESSAGES)]


def _document(dice: Dice) -> bytes:
    """A request as the Messages API takes it, in one JSON document."""
    del dice
    plain = [{"role": message["role"], "content": message["content"]} for message in MESSAGES]
    return _encoded({"model": "claude-haiku-4-5", "system": "s", "messages": plain})


def _import(
    how: str, content: bytes, query: Mapping[str, str] = NO_MORE, *, surely: bool = True, packed: bool = False
) -> Broken:
    headers = {"Content-Type": "application/octet-stream"} | ({"Content-Encoding": "gzip"} if packed else {})
    return Broken(how, content, headers, dict(query), surely)


def _noise(dice: Dice) -> Broken:
    return _import("noise", dice.randbytes(dice.randrange(300)))


def _other_json(dice: Dice) -> Broken:
    bodies: list[Json] = [3, None, True, "x", [], {}, [1, 2], ["a"], {"a": 1}, [{}], [{"a": {}}], {"messages": 3}, [[]]]
    return _import("other JSON", _encoded(dice.choice(bodies)))


def _cut_document(dice: Dice) -> Broken:
    body = _document(dice)
    return _import("cut document", body[: dice.randrange(1, len(body))])


def _broken_lines(dice: Dice) -> Broken:
    """Not one line of the log is whole."""
    lines = [line[: dice.randrange(1, len(line))] for line in _log()]
    return _import("no whole line", b"\n".join(lines))


def _damaged_lines(dice: Dice) -> Broken:
    lines = _log()
    place = dice.randrange(len(lines))
    line = bytearray(lines[place])
    line[dice.randrange(len(line))] ^= 1 << dice.randrange(8)
    return _import("damaged line", b"\n".join([*lines[:place], bytes(line), *lines[place + 1 :]]), surely=False)


def _wrong_rows(dice: Dice) -> Broken:
    rows = [json.loads(line) for line in _log()]
    row = dice.choice(rows)
    wrong: list[Json] = [
        None,
        3,
        [],
        {},
        "x",
        {"role": "user"},
        {"role": {}, "content": []},
        {"content": [3]},
        -1,
        True,
    ]
    row[dice.choice(sorted(row))] = dice.choice(wrong)
    return _import("wrong row", b"\n".join(map(_encoded, rows)), surely=False)


def _wrong_query(dice: Dice) -> Broken:
    name, value = dice.choice(
        [
            ("format", "yaml"),
            ("format", "x" * 51),
            ("session_id", "no spaces"),
            ("session_id", ""),
            ("session_id", "x" * 201),
            ("model", ""),
            ("model", "x" * 201),
        ]
    )
    return _import("wrong query", b"\n".join(_log()), {name: value})


def _cut_gzip(dice: Dice) -> Broken:
    packed = gzip.compress(b"\n".join(_log()), mtime=0)
    content = packed[: dice.randrange(1, len(packed))] if dice.random() < 0.7 else b"\n".join(_log())
    return _import("broken gzip", content, packed=True)


_IMPORTS: tuple[Callable[[Dice], Broken], ...] = (
    *(_noise, _noise, _other_json, _cut_document, _cut_document, _broken_lines, _damaged_lines, _wrong_rows),
    *(_wrong_query, _cut_gzip),
)
