"""JSON as bytes: decode fast, fall back where real transcripts break the fast decoder, cut values out unchanged.

msgspec decodes three times faster than the standard library and refuses three things that real agent logs hold: lone
surrogates (half an emoji), numbers over the double's range, and NaN. The standard library takes them all, so it is the
second try. Both refuse deep nesting with RecursionError; we turn that into ValueError.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

Json = Any  # what json.loads gives; a precise recursive type costs more than it tells

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_SCANNER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(data: bytes | str) -> Json:
    """The value in `data`. Raises ValueError (no content in its text) when it is not JSON or nested too deep."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode_leniently(data)


def _decode_leniently(data: bytes | str) -> Json:
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("the JSON is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON breaks at character {error.pos}: {error.msg}") from None


def encode(value: Json) -> bytes:
    """`value` as compact UTF-8 JSON. Lone surrogates and other text that UTF-8 cannot carry stay as `\\uXXXX` escapes."""
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, ValueError, RecursionError):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def canonical(value: Json) -> bytes:
    """The one JSON text of `value` for hashing: sorted keys, no spaces, ASCII escapes (any JSON library can write it)."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii")


def has_lone_surrogate(text: str) -> bool:
    """Whether `text` holds half a character, which UTF-8 and Postgres cannot carry."""
    return _SURROGATE.search(text) is not None


def members(data: bytes) -> dict[str, bytes]:
    """The members of the JSON object in `data`, each value as the bytes it stands as. Raises ValueError."""
    text = _text(data)
    index = _expect(text, _skip(text, 0), "{")
    found: dict[str, bytes] = {}
    if text[index : index + 1] == "}":
        return found
    while True:
        key, index = _value(text, index)
        if not isinstance(key, str):
            raise ValueError("a member's name is not a string")
        start = _skip(text, _expect(text, _skip(text, index), ":"))
        _, index = _value(text, start)
        found[key] = _bytes(text[start:index])
        index = _skip(text, index)
        if text[index : index + 1] == "}":
            return found
        index = _expect(text, index, ",")


def elements(data: bytes) -> list[bytes]:
    """The elements of the JSON array in `data`, each as the bytes it stands as. Raises ValueError."""
    try:
        return [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, RecursionError):
        return _elements_leniently(data)


def _elements_leniently(data: bytes) -> list[bytes]:
    text = _text(data)
    index = _expect(text, _skip(text, 0), "[")
    found: list[bytes] = []
    if text[index : index + 1] == "]":
        return found
    while True:
        start = _skip(text, index)
        _, index = _value(text, start)
        found.append(_bytes(text[start:index]))
        index = _skip(text, index)
        if text[index : index + 1] == "]":
            return found
        index = _expect(text, index, ",")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the JSON is not UTF-8") from None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8")


def _skip(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index


def _expect(text: str, index: int, wanted: str) -> int:
    if text[index : index + 1] != wanted:
        raise ValueError(f"the JSON breaks at character {index}: expected {wanted!r}")
    return _skip(text, index + 1)


def _value(text: str, index: int) -> tuple[Json, int]:
    try:
        return _SCANNER.raw_decode(text, index)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON breaks at character {error.pos}: {error.msg}") from None
