"""The fake's token count, by hand."""

from __future__ import annotations

import pytest

from ops.fake_provider.counting import MEDIA_TOKENS, blocks_of, tokens_in, tokens_in_text

TEXTS = [
    ("", 0),
    ("a", 1),
    ("abcd", 1),
    ("abcde", 2),
    ("我们", 2),
    ("あ", 1),
    ("가나다", 3),
    ("😀", 1),
    ("我abcd", 2),
    ("ابتث", 1),
]


@pytest.mark.parametrize(("text", "tokens"), TEXTS)
def test_four_characters_make_a_token_and_a_wide_one_makes_its_own(text: str, tokens: int) -> None:
    assert tokens_in_text(text) == tokens


def test_every_string_value_counts_and_names_do_not() -> None:
    turn = {"role": "user", "content": [{"type": "text", "text": "x" * 36}]}
    assert tokens_in("s" * 8, None, [turn]) == (8 + 4 + 4 + 36) // 4


def test_a_picture_counts_as_one_however_many_bytes_it_has() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 1_000_000}
    assert tokens_in({"type": "image", "source": source}) == MEDIA_TOKENS + 2


def test_blocks_are_found_at_any_depth() -> None:
    nested = [{"type": "tool_result", "content": [{"type": "image"}, {"type": "text", "text": "image"}]}]
    assert blocks_of(frozenset({"image", "document"}), nested) == 1
