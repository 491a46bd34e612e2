"""Whatever a transcript holds, the summary is one valid, bounded text that nobody else's tags can end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import summary
from compaction.core.messages import Message, Usage
from compaction.ports import SummaryReply
from compaction.summarizers.extractive import extract
from tests.unit.summarizers.talk import asked, assistant, called, filler, parted, user

SNIPPETS = (
    "</summary>",
    "<summary>",
    "< / Summary >",
    "<analysis>",
    "1. Primary Request and Intent:",
    "\x00",
    "\ud800",
    "\u2028",
    "```",
    "never do that",
    "Exit code 1\nE  assert",
    "*** Begin Patch\n*** Update File: a/b.py",
    "<system-reminder>",
    "<command-name>/x</command-name>",
    "the user said:",
    "Constraint: x",
    "\x1b[31m",
    '"""',
    "- a\n  - b",
    "Only read: `x`",
)
NAMES = (
    "text",
    "name",
    "input",
    "content",
    "command",
    "file_path",
    "path",
    "new_string",
    "old_string",
    "todos",
    "status",
    "edits",
    "id",
    "tool_use_id",
    "is_error",
    "taskId",
    "plan",
    "description",
)
texts = st.text(st.characters(), max_size=30) | st.sampled_from(SNIPPETS)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=5),
    max_leaves=8,
)
kinds = st.sampled_from(("text", "tool_use", "tool_result", "image", "thinking", "server_tool_use", "something_new"))
tools = st.sampled_from(("Bash", "Edit", "Write", "Read", "TodoWrite", "TaskUpdate", "AskUserQuestion", "apply_patch"))
blocks = st.builds(
    lambda kind, name, fields: {"name": name, **fields, "type": kind},
    kinds,
    tools,
    st.dictionaries(st.sampled_from(NAMES), values, max_size=6),
)
messages = st.builds(
    Message,
    role=st.sampled_from(("user", "assistant", "system")),
    content=texts | st.lists(blocks, max_size=3),
    is_meta=st.booleans(),
    is_compact_summary=st.sampled_from((False, False, False, True)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(messages, max_size=10), st.integers(300, 3_000), st.none() | texts, st.none() | texts)
def test_any_conversation_gives_one_whole_bounded_summary_in_valid_utf8(
    talk: list[Message], max_output_tokens: int, prior: str | None, instructions: str | None
) -> None:
    text = extract(asked(talk, max_output_tokens=max_output_tokens, prior_summary=prior, instructions=instructions))

    text.encode("utf-8")
    assert "\x00" not in text
    assert len(text) <= 3 * max_output_tokens + len("<summary>\n\n</summary>")
    assert (text.count("<summary>"), text.count("</summary>")) == (1, 1)
    assert re.search(r"<[\s/]*analysis", text, re.IGNORECASE) is None
    assert set(parted(text)) == set(range(10))


@pytest.mark.parametrize("tag", ["</summary>", "</SUMMARY>", "< / summary >", "<summary>", "<analysis>", "</analysis>"])
def test_tags_in_the_transcript_do_not_end_the_summary(tag: str) -> None:
    talk = asked(
        user(f"Why does {tag} break my page?"),
        assistant(f"Because {tag} stands in the middle, and then it goes on for a while."),
        called("Write", "ok", file_path="/srv/page.html", content=f"<details>{tag}</details>"),
        called("Bash", f"error: {tag}", is_error=True, command=f"grep '{tag}' page.html && make page"),
        filler(),
    )
    reply = SummaryReply(text=extract(talk), stop_reason="end_turn", usage=Usage(), model="extractive")
    found = summary.validate(reply)

    assert found.sections_found == tuple(range(1, 10))
    assert "9. Optional Next Step:" in found.text
    assert "&lt;" in found.text


def test_unfit_characters_become_the_replacement_character() -> None:
    text = extract(asked(user("half \ud83d and nul \x00 here"), filler()))

    assert "- half \N{REPLACEMENT CHARACTER} and nul \N{REPLACEMENT CHARACTER} here" in text


def test_a_result_is_put_to_the_latest_call_when_ids_repeat() -> None:
    call = {"type": "tool_use", "id": "same", "name": "Bash", "input": {"command": "make a"}}
    again = {**call, "input": {"command": "make b"}}
    answers = [{"type": "tool_result", "tool_use_id": "same", "content": words} for words in ("built a", "built b")]
    talk = [
        Message(role="assistant", content=[call]),
        Message(role="user", content=[answers[0]]),
        Message(role="assistant", content=[again]),
        Message(role="user", content=[answers[1]]),
    ]
    shown = parted(extract(asked(talk, filler())))[5]

    assert "- Ran `make a`: ok: built a" in shown
    assert "- Ran `make b`: ok: built b" in shown


def test_sidechain_and_half_streamed_messages_are_not_told() -> None:
    aside = Message(role="user", content="secret of a sub-agent", is_sidechain=True)
    half = Message(role="assistant", content=[{"type": "text", "text": "half a sent"}], partial=True)
    text = extract(asked(user("hello"), aside, half, filler()))

    assert "secret of a sub-agent" not in text
    assert "half a sent" not in text


@pytest.mark.parametrize(
    "bomb",
    [
        "<system-reminder>" * 50_000,
        "<command-args>" * 50_000 + "<command-name>" * 50_000,
        "<" * 500_000,
        "\x1b[" * 300_000,
        '"""\n' * 100_000,
        "a" * 1_000_000,
        " " * 1_000_000 + ".",
    ],
    ids=["reminders", "commands", "angles", "escapes", "fences", "one word", "spaces"],
)
def test_a_text_made_to_be_slow_is_read_like_any_other(bomb: str) -> None:
    """The suite's own time-out would end a search that takes quadratic time."""
    assert set(
        parted(extract(asked(user(bomb), assistant(bomb), called("Bash", bomb, command=bomb), filler())))
    ) == set(range(10))
