"""JSON as bytes: what the fast decoder refuses, one text for hashing, values cut out unchanged."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import jsonbytes

finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), finite, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b'"\\ud83d"', "\ud83d"),
        (b'"\\u0000"', "\0"),
        (b"1e999", math.inf),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_decode_takes_what_real_logs_hold(data: bytes | str, value: object) -> None:
    assert jsonbytes.decode(data) == value


def test_decode_takes_nan() -> None:
    assert math.isnan(jsonbytes.decode(b"[NaN]")[0])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"secret": tru', "the JSON breaks at character 11"),
        (b"[" * 100_000, "the JSON is nested too deep"),
        (b'"\xff"', "the JSON is not UTF-8"),
    ],
)
def test_decode_says_where_it_breaks_and_nothing_of_the_content(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        jsonbytes.decode(data)
    assert "secret" not in str(caught.value)


def test_encode_is_compact_utf8() -> None:
    assert jsonbytes.encode({"a": ["é", 1.5, None]}) == '{"a":["é",1.5,null]}'.encode()


def test_encode_keeps_half_characters_as_escapes_and_is_valid_json_beside_nan() -> None:
    assert jsonbytes.encode(["\ud83d", {"k": math.nan}, [], {}]) == b'["\\ud83d",{"k":null},[],{}]'


@settings(deadline=None)
@given(json_values)
def test_what_was_encoded_decodes_to_the_same(value: object) -> None:
    assert jsonbytes.decode(jsonbytes.encode(value)) == value


def test_canonical_sorts_keys_and_escapes_everything_but_ascii() -> None:
    assert jsonbytes.canonical({"b": 1, "a": 'é"\n🙂'}) == b'{"a":"\\u00e9\\"\\n\\ud83d\\ude42","b":1}'
    assert jsonbytes.canonical({"b": [1.5], "a": "é"}) == b'{"a":"\\u00e9","b":[1.5]}'


whole_values = st.recursive(  # no doubles: those are written in our own way
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(st.characters(codec=None, exclude_categories=[]))),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@settings(deadline=None)
@given(whole_values)
def test_canonical_is_what_the_standard_library_writes_whichever_encoder_was_used(value: object) -> None:
    written = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    assert jsonbytes.canonical(value) == written.encode("ascii")


@pytest.mark.parametrize("text", ["plain", "\x7f", "caf\xe9", "\ud83d", "a\u2028b", "\x00\x1f/"])
def test_canonical_escapes_alike_in_ascii_texts_and_in_others(text: str) -> None:
    assert jsonbytes.canonical([text]) == json.dumps([text]).encode("ascii")


@pytest.mark.parametrize(
    ("number", "written"),
    [  # by hand after ECMA-262, Number::toString
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (-12.25, "-12.25"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (0.0000125, "0.0000125"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (math.nan, "null"),
        (-math.inf, "null"),
    ],
)
def test_canonical_writes_numbers_as_every_language_can(number: float, written: str) -> None:
    assert jsonbytes.canonical([number]) == f"[{written}]".encode()
    assert jsonbytes.canonical({"n": {"m": number}}) == f'{{"n":{{"m":{written}}}}}'.encode()


@settings(deadline=None)
@given(finite)
def test_a_canonical_number_reads_back_as_the_same_double(number: float) -> None:
    assert float(json.loads(jsonbytes.canonical(number))) == number


def test_the_canonical_text_does_not_tell_a_whole_double_from_an_integer() -> None:
    assert jsonbytes.canonical({"timeout": 30.0, "name": "x"}) == jsonbytes.canonical({"name": "x", "timeout": 30})


@pytest.mark.parametrize(
    ("value", "levels", "deeper"),
    [
        ("text", 0, False),
        ([], 0, True),
        ([], 1, False),
        ({"a": [[]]}, 2, True),
        ({"a": [[]]}, 3, False),
        ([1, "x"], 1, False),
    ],
)
def test_nesting_is_counted_in_objects_and_arrays(value: object, levels: int, deeper: bool) -> None:
    assert jsonbytes.nested_deeper_than(value, levels) is deeper


@pytest.mark.parametrize(("text", "has"), [("plain", False), ("🙂", False), ("\ud83d", True), ("a\udc00", True)])
def test_half_a_character_is_seen(text: str, has: bool) -> None:
    assert jsonbytes.has_lone_surrogate(text) is has


def test_members_are_the_bytes_as_they_stand() -> None:
    data = ' { "a" : 1.50 , "b":{"c": "é\\u0000"} ,"a2":[ 1, 2 ]} '.encode()
    assert jsonbytes.members(data) == {"a": b"1.50", "b": '{"c": "é\\u0000"}'.encode(), "a2": b"[ 1, 2 ]"}
    assert jsonbytes.members(b"{ }") == {}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a": "\\ud83d", "\\ud83d":NaN ,"c": {} }', {"a": b'"\\ud83d"', "\ud83d": b"NaN", "c": b"{}"}),
        (b'\xef\xbb\xbf{"a":1}', {"a": b"1"}),
        (b"\xef\xbb\xbf{ } ", {}),
        (b'{"a": 1, "a": 2}', {"a": b"2"}),
    ],
)
def test_members_takes_what_decode_takes(data: bytes, found: dict[str, bytes]) -> None:
    assert jsonbytes.members(data) == found


@pytest.mark.parametrize(
    "data",
    [
        b"[1]",
        b'{"\\ud83d":1} x',
        b"\xef\xbb\xbf{} x",
        b"{1:2}",
        b'{"a" 1}',
        b'{"a":1 "b":2}',
        b'{"a":}',
        b"",
        b'{"a":\xff}',
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_members_refuses_what_is_no_object(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|member"):
        jsonbytes.members(data)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'[{"a": 1e2} , null ]', [b'{"a": 1e2}', b"null"]),
        (b'[ "\\ud83d",{"a": 1e2} , NaN ]', [b'"\\ud83d"', b'{"a": 1e2}', b"NaN"]),  # beyond the fast decoder
        (b"[ ]", []),
        (b"\xef\xbb\xbf[]", []),
    ],
)
def test_elements_are_the_bytes_as_they_stand(data: bytes, found: list[bytes]) -> None:
    assert jsonbytes.elements(data) == found


@pytest.mark.parametrize(
    "data", [b"{}", b'["\\ud83d"]x', b"\xef\xbb\xbf[] x", b"[1 2]", b"[1", b"\xff", b'["\\ud83d" 1]']
)
def test_elements_refuses_what_is_no_array(data: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsonbytes.elements(data)
