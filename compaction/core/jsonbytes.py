"""JSON as bytes: decode fast, fall back where real transcripts break the fast decoder, cut values out unchanged.

msgspec decodes three times faster than the standard library and refuses three things that real agent logs hold: lone
surrogates (half an emoji), numbers over the double's range, and NaN. The standard library takes them all, so it is the
second try. Both refuse deep nesting with RecursionError; we turn that into ValueError.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec

Json = Any  # what json.loads gives; a precise recursive type costs more than it tells

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")  # eight times faster; differs only in what it leaves unescaped
_ASCII = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))
_DELETE = b"\x7f"  # the one character of ASCII that canonical text escapes and fast encoders do not
_SCANNER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPE = re.compile(rb"\\u")  # twice as fast as looking for the two bytes with `in`
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_DIGITS = 21  # ECMA-262, Number::toString: larger numbers get an exponent
_PLAIN_ZEROS = 6  # the same for small ones: 0.000001 is plain, 1e-7 is not


def decode(data: bytes | str) -> Json:
    """The value in `data`. Raises ValueError (no content in its text) when it is not JSON or nested too deep."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode_leniently(data)


def decode_judged(data: bytes) -> tuple[Json, bool]:
    """The value in `data`, and whether its bytes prove that it is sound. Raises like `decode`.

    Sound: no string holds NUL or half a character, no number is NaN or infinite. The fast decoder takes such things
    only behind an escape, and most bodies have no escape of that kind.
    """
    try:
        return _DECODER.decode(data), _ESCAPE.search(data) is None
    except (msgspec.DecodeError, RecursionError):
        return _decode_leniently(data), False


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
    """`value` as compact UTF-8 JSON. Lone surrogates stay as escapes; NaN and the infinities become null."""
    try:
        return _ENCODER.encode(value)
    except ValueError:  # UnicodeEncodeError is one
        return "".join(_pieces(value, sort=False)).encode("ascii")


def canonical(value: Json) -> bytes:
    """The one JSON text of `value` for hashing; every JSON library can be made to write it.

    Keys sorted by code point, no spaces. Everything but printable ASCII is escaped with four lower-case hex digits per
    UTF-16 unit, two units for an emoji; quote, backslash, backspace, form feed, line feed, carriage return and tab have
    their short escapes. Whole numbers are digits, other numbers what ECMAScript's Number.prototype.toString writes for
    the double, so 1.0 is 1; NaN and the infinities are null.
    """
    if _has_float(value):
        return "".join(_pieces(value, sort=True)).encode("ascii")
    with contextlib.suppress(ValueError):  # a lone surrogate
        text = _SORTED.encode(value)
        if text.isascii() and _DELETE not in text:
            return text
    return _ASCII.encode(value).encode("ascii")


def nested_deeper_than(value: Json, levels: int) -> bool:
    """Whether `value` has objects or arrays inside each other on more than `levels` levels."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not layer:
            return False
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(layer)


def has_lone_surrogate(text: str) -> bool:
    """Whether `text` holds half a character, which UTF-8 and Postgres cannot carry."""
    return _SURROGATE.search(text) is not None


def _has_float(value: Json) -> bool:
    nodes = [value]
    for node in nodes:  # grows while it is read
        kind = type(node)
        if kind is dict:
            nodes += node.values()
        elif kind is list:
            nodes += node
        elif kind is float:
            return True
    return False


def _pieces(value: Json, *, sort: bool) -> Iterator[str]:
    """The JSON text of `value` in pieces, numbers by `_number`; slower than the libraries, for what they cannot."""
    if isinstance(value, dict):
        mark = "{"
        for key in sorted(value) if sort else value:
            yield f"{mark}{encode_basestring_ascii(key)}:"
            yield from _pieces(value[key], sort=sort)
            mark = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        mark = "["
        for item in value:
            yield mark
            yield from _pieces(item, sort=sort)
            mark = ","
        yield "]" if value else "[]"
    elif isinstance(value, float):
        yield _number(value)
    else:
        yield json.dumps(value)


def _number(value: float) -> str:
    """A double as ECMAScript writes it (ECMA-262, Number::toString), null when it is not finite."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"  # without the sign that some zeros have
    head, _, exponent = repr(abs(value)).partition("e")  # the shortest digits that read back as the same double
    whole, _, fraction = head.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - len(whole + fraction) + len(digits)
    return ("-" if value < 0 else "") + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    """0.digits × 10^point, as plain decimals from 1e-6 to 1e21 and with an exponent outside."""
    if len(digits) <= point <= _PLAIN_DIGITS:
        return digits.ljust(point, "0")
    if 0 < point <= _PLAIN_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if -_PLAIN_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1:+d}"


def members(data: bytes) -> dict[str, bytes]:
    """The members of the JSON object in `data`, each value as the bytes it stands as. Raises ValueError.

    A name that comes twice has its last value, as in every decoder here.
    """
    try:
        raws = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _members_leniently(data)
    return {name: bytes(raw) for name, raw in raws.items()}


def _members_leniently(data: bytes) -> dict[str, bytes]:
    text = _text(data)
    index = _expect(text, _skip(text, 0), "{")
    found: dict[str, bytes] = {}
    if text[index : index + 1] == "}":
        _expect_end(text, index + 1)
        return found
    while True:
        key, index = _value(text, index)
        if not isinstance(key, str):
            raise ValueError("a member's name is not a string")  # noqa: TRY004 - bad data, not a bad argument
        start = _skip(text, _expect(text, _skip(text, index), ":"))
        _, index = _value(text, start)
        found[key] = _bytes(text[start:index])
        index = _skip(text, index)
        if text[index : index + 1] == "}":
            _expect_end(text, index + 1)
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
        _expect_end(text, index + 1)
        return found
    while True:
        start = _skip(text, index)
        _, index = _value(text, start)
        found.append(_bytes(text[start:index]))
        index = _skip(text, index)
        if text[index : index + 1] == "]":
            _expect_end(text, index + 1)
            return found
        index = _expect(text, index, ",")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")  # a byte order mark passes, as in `decode`
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


def _expect_end(text: str, index: int) -> None:
    end = _skip(text, index)
    if end != len(text):
        raise ValueError(f"the JSON breaks at character {end}: expected its end")


def _value(text: str, index: int) -> tuple[Json, int]:
    try:
        return _SCANNER.raw_decode(text, index)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON breaks at character {error.pos}: {error.msg}") from None
