"""The prompts: what they say in which order, and that no word of them changes without a new version."""

from __future__ import annotations

import itertools

import pytest

from compaction.core import sections, wording
from compaction.core.prompts import (
    MAX_INSTRUCTION_CHARS,
    PROMPT_VERSION,
    Kind,
    Prompts,
    RequestKind,
    build_prompts,
    compact_instructions,
)
from compaction.core.wording import TEXTS

KINDS: tuple[Kind, ...] = ("base", "from", "up_to")

FINGERPRINTS = {
    1: "28ec33a6097791d1cc0ea7e8274158d8e19c276b0d4f3a9dffc175136a11319e",
    2: "7c604b517f256691d0938f743a75f5f4d096562709ddf6d0ba39b39f980b5eae",  # how kept older messages are announced
}


def test_a_change_of_wording_asks_for_a_new_version() -> None:
    """Add a line to FINGERPRINTS and raise PROMPT_VERSION: a summary can be traced to the words that asked for it."""
    assert FINGERPRINTS[PROMPT_VERSION] == wording.fingerprint()
    assert max(FINGERPRINTS) == PROMPT_VERSION


@pytest.mark.parametrize("kind", KINDS)
def test_the_ban_on_tools_stands_first_and_the_reminder_last(kind: Kind) -> None:
    user = build_prompts(kind, instructions=("Stress the tests.",), pinned=("Use tabs.",), prior_summary=True).user
    assert user.startswith(TEXTS["preamble"])
    assert user.endswith(TEXTS["reminder"])
    assert "tool" in TEXTS["preamble"]
    assert "tool" in TEXTS["reminder"]


@pytest.mark.parametrize(
    ("kind", "titles"), [("base", sections.TITLES), ("from", sections.TITLES), ("up_to", sections.UP_TO_TITLES)]
)
def test_each_kind_asks_for_its_nine_sections_after_an_analysis(kind: Kind, titles: tuple[str, ...]) -> None:
    user = build_prompts(kind).user
    found = sections.headings(user)
    assert [user[heading.start : heading.end] for heading in found] == [
        f"{number}. {title}" for number, title in enumerate(titles, 1)
    ]
    assert user.index("<analysis>") < user.index("<summary>") < found[0].start


def test_each_kind_has_its_own_task() -> None:
    for kind, other in itertools.permutations(KINDS, 2):
        assert TEXTS[f"task_{kind}"] in build_prompts(kind).user
        assert TEXTS[f"task_{kind}"] not in build_prompts(other).user


@pytest.mark.parametrize(
    "asked",
    [
        "language in which the user speaks",
        "identifiers exactly",
        "rejected",
        "word for word",
        "data",
        "newer ones count",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_prompt_asks_for_what_summaries_tend_to_lose(asked: str, kind: Kind) -> None:
    assert asked in build_prompts(kind).user


@pytest.mark.parametrize(("request_kind", "system"), [("fresh", TEXTS["system"]), ("shared_prefix", "")])
def test_a_shared_prefix_keeps_the_sessions_own_system_prompt(request_kind: RequestKind, system: str) -> None:
    prompts = build_prompts("base", request_kind=request_kind)
    assert prompts == Prompts(system, build_prompts("base").user)


@pytest.mark.parametrize(
    ("prompts", "text"),
    [
        (build_prompts("base", prior_summary=True), "prior_summary"),
        (build_prompts("base", shorter=True), "shorter"),
        (build_prompts("base", pinned=("Use tabs.",)), "pinned"),
        (build_prompts("base", instructions=("Stress the tests.",)), "instructions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_part_is_there_only_when_it_is_needed(prompts: Prompts, text: str) -> None:
    assert TEXTS[text] in prompts.user
    assert TEXTS[text] not in build_prompts("base").user


def test_instructions_follow_in_their_order_word_for_word() -> None:
    user = build_prompts("base", instructions=("first {braces} %s", "  ", "second\nline ")).user
    assert f"{TEXTS['instructions']}\n\nfirst {{braces}} %s\n\nsecond\nline\n\n{TEXTS['reminder']}" in user


def test_blank_instructions_are_none() -> None:
    assert build_prompts("base", instructions=("", " \n")) == build_prompts("base")


def test_an_instruction_has_a_limit() -> None:
    user = build_prompts("base", instructions=("z" * (MAX_INSTRUCTION_CHARS + 1),)).user
    assert "z" * MAX_INSTRUCTION_CHARS in user
    assert "z" * (MAX_INSTRUCTION_CHARS + 1) not in user


def test_pinned_constraints_are_listed_word_for_word() -> None:
    user = build_prompts("base", pinned=("Never touch the API.", 'Say "done" at the end.')).user
    assert f'{TEXTS["pinned"]}\n- Never touch the API.\n- Say "done" at the end.\n' in user


# ---------------------------------------------------------------------------------------------------------- CLAUDE.md


@pytest.mark.parametrize(
    ("claude_md", "found"),
    [
        (
            "# Project\nUse make.\n\n## Compact Instructions\nKeep the API names.\n\n## Style\nTabs.",
            "Keep the API names.",
        ),
        ("## compact instructions:\nKeep it.", "Keep it."),
        ("# Compact Instructions #\nA\n## Detail\nB\n# Other\nC", "A\n## Detail\nB"),
        ("### Compact Instructions\nA\n## Other\nB", "A"),
        ("## Compact Instructions\nA\n## Other\nB\n## Compact Instructions\nC", "A\n\nC"),
        ("## Compact Instructions\n```sh\n# a comment\n```\nA", "```sh\n# a comment\n```\nA"),
        ("## Compact Instructions\n~~~\n```\n## Other\n~~~\nA\n## End\nB", "~~~\n```\n## Other\n~~~\nA"),
        ("```\n## Compact Instructions\nA\n```", None),
        ("## Compact Instructions\n\n## Next\nA", None),
        ("# Project\nNothing about it; ## Compact Instructions is not a heading here.", None),
        ("##Compact Instructions\nA", None),
        ("", None),
    ],
)
def test_the_compact_instructions_of_a_claude_md(claude_md: str, found: str | None) -> None:
    assert compact_instructions(claude_md) == found


def test_long_compact_instructions_have_a_limit() -> None:
    found = compact_instructions("## Compact Instructions\n" + "a" * 100_000)
    assert found == "a" * MAX_INSTRUCTION_CHARS
