"""The table of request fields against the SDK's own request types, and the small questions about types and ids."""

from __future__ import annotations

import typing

import pytest
import typing_extensions

from compaction.core import fields


def _request_types() -> dict[str, frozenset[str]]:
    """Type name → fields, read from the annotations of the installed SDK."""
    from anthropic.types import tool_result_block_param  # noqa: PLC0415 - slow import
    from anthropic.types.beta import beta_content_block_param  # noqa: PLC0415 - slow import

    found = {}
    for union in (beta_content_block_param.BetaContentBlockParam, tool_result_block_param.Content):
        for block in filter(typing_extensions.is_typeddict, typing.get_args(union)):
            hints = typing.get_type_hints(block)
            found[typing.get_args(hints["type"])[0]] = frozenset(hints)
    return found


def test_the_table_is_what_the_sdk_says() -> None:
    assert _request_types() == fields.REQUEST_FIELDS


def test_citations_have_one_field_that_only_answers_have() -> None:
    from anthropic.types import CitationCharLocation, CitationCharLocationParam  # noqa: PLC0415 - slow import

    assert set(CitationCharLocation.model_fields) - set(typing.get_type_hints(CitationCharLocationParam)) == (
        fields.CITATION_ANSWER_FIELDS
    )


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("tool_use", "assistant"),
        ("server_tool_use", "assistant"),
        ("thinking", "assistant"),
        ("advisor_tool_result", "assistant"),
        ("new_kind_of_tool_result", "assistant"),
        ("tool_result", "user"),
        ("image", "user"),
        ("document", "user"),
        ("text", None),
        ("hologram", None),
    ],
)
def test_some_types_belong_to_one_role(kind: str, role: str | None) -> None:
    assert fields.speaker(kind) == role


def test_ids_are_keys_whatever_they_are() -> None:
    assert fields.ident("toolu_1") == "toolu_1"
    assert fields.ident(7) == "7"
    assert fields.ident(None) == "null"
    assert fields.ident(["\ud83d"]) == '["\\ud83d"]'
