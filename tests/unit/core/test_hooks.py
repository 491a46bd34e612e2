from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.hooks import (
    MAX_INSTRUCTIONS_CHARS,
    MAX_MESSAGES,
    MAX_MESSAGES_TOKENS,
    MAX_REASON_CHARS,
    BadAnswer,
    Endpoint,
    Event,
    HookOutcome,
    one_line,
    pre_compact_answer,
    session_start_answer,
)
from compaction.core.messages import Message
from compaction.core.tokens import estimate_messages
from compaction.ports import HookNote

SECRET_WORDS = "the customer's password is hunter2"  # stands for whatever a hook says that no note may repeat


def said(answer: Any, name: str = "http:1", event: Event = "pre_compact") -> HookOutcome:  # noqa: ANN401 - JSON
    """A hook that answered."""
    return HookOutcome(name=name, event=event, seconds=0.25, answer=answer)


def failed(problem: str, event: Event = "pre_compact") -> HookOutcome:
    """A hook that did not."""
    return HookOutcome(name="http:bad", event=event, seconds=5.0, problem=problem)


def problem(answer: Any) -> str | None:  # noqa: ANN401 - JSON
    """What a pre_compact answer's note says."""
    return pre_compact_answer([said(answer)]).notes[0].problem


def start_problem(answer: Any) -> str | None:  # noqa: ANN401 - JSON
    """What a session_start answer's note says."""
    return session_start_answer([said(answer, event="session_start")]).notes[0].problem


def test_without_hooks_nothing_is_added_and_nothing_noted() -> None:
    assert pre_compact_answer([]).notes == ()
    assert pre_compact_answer([]).instructions is None
    assert pre_compact_answer([]).veto is None
    assert session_start_answer([]).messages == ()


@pytest.mark.parametrize("answer", [None, {}, {"veto": False}, {"veto": None, "instructions": None}, {"other": 1}])
def test_a_hook_may_have_nothing_to_say(answer: Any) -> None:  # noqa: ANN401 - JSON
    result = pre_compact_answer([said(answer)])
    assert (result.instructions, result.veto) == (None, None)
    assert result.notes == (HookNote(name="http:1", event="pre_compact", ok=True, seconds=0.25),)


def test_instructions_of_several_hooks_stand_in_the_hooks_order() -> None:
    result = pre_compact_answer([said({"instructions": " first "}), said({}), said({"instructions": "second"})])
    assert result.instructions == "first\n\nsecond"
    assert [note.ok for note in result.notes] == [True, True, True]


def test_blank_instructions_are_none() -> None:
    assert pre_compact_answer([said({"instructions": " \n "})]).instructions is None


def test_half_characters_and_nul_do_not_reach_the_prompt() -> None:
    assert pre_compact_answer([said({"instructions": "a\ud83d\0b"})]).instructions == "a\ufffd\ufffdb"


def test_the_first_veto_counts_and_every_hook_is_noted() -> None:
    result = pre_compact_answer([said({"instructions": "x"}), said({"veto": "legal hold"}), said({"veto": "other"})])
    assert result.veto == "legal hold"
    assert len(result.notes) == 3


def test_a_veto_needs_no_reason_and_excuses_what_else_is_wrong() -> None:
    assert pre_compact_answer([said({"veto": True})]).veto == "no reason was given"
    held = pre_compact_answer([said({"veto": "hold", "instructions": 5})])
    assert (held.veto, held.notes[0].ok) == ("hold", True)


def test_the_reason_of_a_veto_is_one_short_line_without_anything_that_steers_a_terminal() -> None:
    reason = "legal\x1b[31m hold\r\n\u202etxt.\ud800 " + "x" * 1_000
    veto = pre_compact_answer([said({"veto": reason})]).veto
    assert veto is not None
    assert veto.startswith("legal [31m hold txt. xxx")
    assert veto.endswith("…")
    assert len(veto) == MAX_REASON_CHARS == 300


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (SECRET_WORDS, "the answer must be an object"),
        ([SECRET_WORDS], "the answer must be an object"),
        (0, "the answer must be an object"),
        ({"veto": 1}, "veto must be true, false or the reason as text"),
        ({"veto": "\x1b \n"}, "veto must be true, false or the reason as text"),
        ({"instructions": [SECRET_WORDS]}, "instructions must be text"),
    ],
)
def test_a_bad_answer_becomes_a_note_that_quotes_nothing(answer: Any, words: str) -> None:  # noqa: ANN401 - JSON
    result = pre_compact_answer([said(answer)])
    assert (result.instructions, result.veto) == (None, None)
    assert result.notes == (HookNote(name="http:1", event="pre_compact", ok=False, seconds=0.25, problem=words),)


def test_a_problem_becomes_a_note_and_the_others_count() -> None:
    result = pre_compact_answer([failed("did not answer within 5 s"), said({"instructions": "x"})])
    assert result.instructions == "x"
    assert (result.notes[0].ok, result.notes[0].problem) == (False, "did not answer within 5 s")


def test_instructions_of_all_hooks_together_are_bounded_and_later_short_ones_still_fit() -> None:
    long = "x" * (MAX_INSTRUCTIONS_CHARS - 10)
    result = pre_compact_answer([said({"instructions": text}) for text in (long, "y" * 11, "z" * 10)])
    assert result.instructions == f"{long}\n\n{'z' * 10}"
    assert [note.ok for note in result.notes] == [True, False, True]
    assert result.notes[1].problem == "all hooks together may bring instructions of 20,000 characters"


def test_a_note_is_one_short_line_with_milliseconds() -> None:
    note = HookOutcome(name="n", event="pre_compact", seconds=1.23456, problem="a\nb" + "x" * 500).note()
    assert note.seconds == 1.235
    assert note.problem is not None
    assert note.problem.startswith("a bxxx")
    assert len(note.problem) == 200


def test_messages_of_hooks_are_meta_messages_of_the_user_in_the_hooks_order() -> None:
    blocks = [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "  "}]
    result = session_start_answer(
        [
            said({"messages": [{"role": "user", "content": "a", "uuid": "u1", "usage": {"input_tokens": 5}}]}),
            said({"messages": []}),
            said({"messages": [{"role": "user", "content": blocks, "is_meta": False}]}),
        ]
    )
    assert result.messages == (
        Message(role="user", content="a", is_meta=True),
        Message(role="user", content=[{"type": "text", "text": "b"}], is_meta=True),
    )
    assert [note.ok for note in result.notes] == [True, True, True]


@pytest.mark.parametrize("answer", [None, {}, {"messages": None}])
def test_a_hook_may_bring_no_messages(answer: Any) -> None:  # noqa: ANN401 - JSON
    assert start_problem(answer) is None


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ({"role": "user"}, "messages must be a list"),
        ([SECRET_WORDS], "messages[0] must be an object with role and content"),
        ([{"role": "robot", "content": "x"}], "messages[0].role must be user, assistant or system"),
        ([{"role": "assistant", "content": SECRET_WORDS}], "messages[0].role must be user"),
        ([{"role": "system", "content": SECRET_WORDS}], "messages[0].role must be user"),
        ([{"role": "user"}], "messages[0].content must be a string or a list of blocks"),
        ([{"role": "user", "content": " \n"}], "messages[0].content is blank"),
        ([{"role": "user", "content": []}], "messages[0].content is blank"),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "messages[0].content is blank"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0] must be a text block"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
            ],
            "messages[1].content[0] must be a text block",
        ),
        ([{"role": "user", "content": "x"}] * (MAX_MESSAGES + 1), "all hooks together may bring 20 messages"),
    ],
)
def test_wrong_messages_become_a_note_that_quotes_nothing(messages: Any, words: str) -> None:  # noqa: ANN401 - JSON
    assert start_problem({"messages": messages}) == words


def test_messages_of_all_hooks_together_are_bounded_in_number() -> None:
    many = [{"role": "user", "content": "x"}] * (MAX_MESSAGES - 1)
    result = session_start_answer([said({"messages": given}) for given in (many, many[:2], many[:1])])
    assert len(result.messages) == MAX_MESSAGES
    assert [note.ok for note in result.notes] == [True, False, True]


def test_messages_of_all_hooks_together_are_bounded_in_tokens() -> None:
    half = {"role": "user", "content": "word " * 4_500}  # 22,500 letters and spaces: 5,625 tokens, and 4 around them
    result = session_start_answer([said({"messages": [half]}), said({"messages": [half]})])
    assert len(result.messages) == 1
    assert result.notes[1].problem == "all hooks together may bring messages of 10,000 tokens"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
answers = json_values | st.fixed_dictionaries(
    {},
    optional={
        "veto": json_values,
        "instructions": json_values,
        "messages": st.lists(json_values | st.fixed_dictionaries({"role": st.just("user"), "content": json_values})),
    },
)


@settings(deadline=None)
@given(st.lists(answers, max_size=5))
def test_whatever_hooks_answer_there_is_a_note_for_each_and_the_limits_hold(given_answers: list[Any]) -> None:
    before = pre_compact_answer([said(answer) for answer in given_answers])
    after = session_start_answer([said(answer, event="session_start") for answer in given_answers])
    assert len(before.notes) == len(after.notes) == len(given_answers)
    assert len(before.veto or "") <= MAX_REASON_CHARS
    assert all(message.role == "user" and message.is_meta for message in after.messages)
    assert len(after.messages) <= MAX_MESSAGES
    assert estimate_messages(after.messages) <= MAX_MESSAGES_TOKENS
    json.dumps([message.content for message in after.messages], ensure_ascii=False).encode()


@settings(deadline=None)
@given(st.text(max_size=500), st.integers(min_value=1, max_value=50))
def test_a_line_is_short_and_printable(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    line.encode()


def test_address_and_secret_of_an_endpoint_stay_out_of_its_repr() -> None:
    endpoint = Endpoint("id-1", "pre_compact", "https://example.com/?token=abc", "whsec_abc")
    assert "abc" not in repr(endpoint)
    assert "example.com" not in repr(endpoint)


def test_a_bad_answer_is_a_value_error() -> None:
    assert issubclass(BadAnswer, ValueError)
