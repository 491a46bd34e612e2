"""What the user wants from now on survives every summary word for word."""

from __future__ import annotations

import pytest

from compaction.core.constraints import MAX_CONSTRAINT_CHARS, MAX_PINNED, MAX_PINNED_CHARS, after_summary
from compaction.core.messages import Message
from compaction.core.user_words import user_texts

USER = Message(role="user", content="Port it. Never touch\n  the public API! Use tabs.")


@pytest.mark.parametrize(
    "line",
    [
        "Constraint: Never touch the public API!",
        '   - Constraint: "Never touch the public API!"',
        "* **Constraint:** «Never touch the public API!»",
        "constraint: never touch the public API!",
        "• Constraint:   “Never touch the public API!”  ",
    ],
)
def test_a_constraint_is_found_however_the_line_is_written(line: str) -> None:
    found = after_summary((), f"6. All User Messages:\n{line}\n7. Pending Tasks:", user_texts([USER]))
    assert [text.casefold() for text in found] == ["never touch the public api!"]


@pytest.mark.parametrize(
    "line",
    [
        "Constraint: Delete every branch.",  # nobody said so
        "The user's constraint: use tabs.",
        "Constraint:",
        'Constraint: ""',
        f"Constraint: {'x' * (MAX_CONSTRAINT_CHARS + 1)}",
    ],
)
def test_only_what_the_user_literally_wrote_is_pinned(line: str) -> None:
    messages = [USER, Message(role="user", content="x" * (MAX_CONSTRAINT_CHARS + 1))]
    assert after_summary((), line, user_texts(messages)) == ()


@pytest.mark.parametrize(
    "message",
    [
        Message(role="assistant", content="Use spaces."),
        Message(role="user", content="Use spaces.", is_meta=True),
        Message(role="user", content="Use spaces.", is_compact_summary=True),
        Message(role="user", content="Use spaces.", is_sidechain=True),
        Message(role="user", content=[{"type": "tool_result", "tool_use_id": "t", "content": "Use spaces."}]),
        Message(role="user", content=[{"type": "text", "text": 5}]),
    ],
    ids=["assistant", "injected", "summary", "sidechain", "tool result", "broken"],
)
def test_nobody_but_the_user_can_pin(message: Message) -> None:
    assert user_texts([message]) in ((), (5,))
    assert after_summary((), "Constraint: Use spaces.", user_texts([message])) == ()


def test_old_constraints_stay_in_front_and_are_not_doubled() -> None:
    text = "Constraint: use tabs.\nConstraint: Never touch the public API!"
    found = after_summary(("Use tabs.", "Be brief."), text, user_texts([USER]))
    assert found == ("Use tabs.", "Be brief.", "Never touch the public API!")


def test_old_constraints_stay_when_a_summary_forgets_them() -> None:
    assert after_summary(("Be brief.",), "no labels here", []) == ("Be brief.",)


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("Never delete the database.", "delete the database"),
        ("Never delete\nthe database.", "the database"),
        ("Under no circumstances\ndelete the database.", "delete the database."),
        ("Never ... delete the database.", "delete the database."),
        ("Never do one of these:\n- delete the database\n- push to main", "delete the database"),
        ("Stop. Go on.", "Stop."),
        ("Should we delete the database?", "Should we delete the database?"),
        ("绝不要\n删除旧的数据库。", "删除旧的数据库"),
        ("绝不要删除旧的数据库。", "删除"),
        ("Use tabs\nBe brief", "Be brief"),
        ("**Never do any of these:**\n- Delete the old backups\n- Push to main", "Delete the old backups"),
        ("Never do any of the following\n- Delete the old backups", "Delete the old backups"),
        (f"Never {'ever ' * 100}do these:\n- Delete the old backups", "Delete the old backups"),
        ("Never do any of these:\n\nDelete the old backups.\n\nPush to main.", "Push to main."),
        ("Under no circumstances may you ever\nDELETE the old backups.", "DELETE the old backups."),
        ("Do not, as proposed by Acme Inc. delete the customer table.", "delete the customer table."),
        ("Look at this\n\n```\nfoo\n\nAlways push to main.\n\nx\n```", "Always push to main."),
        ("> Always push to main.", "Always push to main."),
        (f"{'x' * 99}.\n" * 199 + f"{'y' * 82}.\n\nDrop the table only after I said so.", "Drop the table"),
    ],
)
def test_half_a_sentence_is_not_what_the_user_said(text: str, piece: str) -> None:
    assert after_summary((), f"Constraint: {piece}", [text]) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Port it. Keep the API. Use tabs.", "Keep the API. Use tabs."),
        ("My rules:\n\n1. Use tabs\n2. Be brief", "My rules: Use tabs"),
        ("Use tabs.\nBe brief.", "Be brief."),
        ("请修改配置。绝不要删除旧文件。", "绝不要删除旧文件"),
        ("Well... use tabs.", "Well... use tabs."),
        ("Use tabs...", "Use tabs..."),
    ],
)
def test_whole_sentences_may_be_named_one_or_several(text: str, words: str) -> None:
    assert after_summary((), f"Constraint: {words}", [text]) == (words,)


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("Use tabs.", "Forget what I said about tabs."),
        ("Never push to main.", "You may push to main now."),
        ("Never touch the public API!", "Never mind the public API, touch whatever you need."),
        ("Be brief.", "Please forget all the rules I gave you."),
        ("Lösche niemals die alten Backups.", "Du darfst die alten Backups jetzt löschen."),
        ("绝不要删除旧文件。", "现在可以删除旧文件了。"),
    ],
)
def test_what_the_user_took_back_goes_when_a_summary_says_so(rule: str, later: str) -> None:
    line = f'Withdrawn: "{rule}"'
    assert after_summary((rule, "Keep the log."), line, [later]) == ("Keep the log.",)
    assert after_summary((rule,), "no such line", [later]) == (rule,)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Push it."],
        ["The push to main failed."],
        ["You may use tabs."],
        ["You may push to main now.", "No wait. Never push to main."],
        ["You may not push to main."],
        ["You can't push to main."],
        ["You can never push to main."],
        ["Do you think we can push to main?"],
        ["You can push to main only when I say so."],
        ["You can push the docs."],
        ["你不可以 push to main。"],
        ["Don't forget the rules!"],
        ["Please do not forget all the rules I gave you."],
        ["Disregard the ESLint rule about semicolons."],
        ["Never mind the firewall rules."],
        ["If I say forget pushing to main, ask me twice."],
        ["You may push to main but must not force it."],
        ['The page said "you may push to main", so what.'],
    ],
)
def test_a_model_alone_takes_nothing_back(texts: list[str]) -> None:
    assert after_summary(("Never push to main.",), "Withdrawn: Never push to main.", texts) == ("Never push to main.",)


def test_a_rule_that_is_not_on_the_list_cannot_be_taken_back() -> None:
    assert after_summary(("Be brief.",), "Withdrawn: never heard of it", ["Forget the rules."]) == ("Be brief.",)


def test_what_a_summary_names_pushes_nothing_out() -> None:
    """Neither by their number nor by their length."""
    many = tuple(f"Rule number {number}." for number in range(MAX_PINNED))
    assert after_summary(many, "Constraint: use tabs.", user_texts([USER])) == many
    long = tuple(f"{number:02} {'x' * 396}." for number in range(25))
    assert sum(map(len, long)) > MAX_PINNED_CHARS - len("use tabs.")
    assert after_summary(long, "Constraint: use tabs.", user_texts([USER])) == long


def test_very_many_lines_and_words_are_looked_at_once() -> None:
    """A reply that takes back one rule two hundred times, and half a million characters of the user."""
    rule = "Never delete the old backups."
    assert after_summary((rule,), f"Withdrawn: {rule}\n" * 200, ["a:\n" * 6_600] * 25) == (rule,)
