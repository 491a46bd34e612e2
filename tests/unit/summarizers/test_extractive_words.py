"""What the user said: quoted word for word, the rules among it named, the changes of mind told."""

from __future__ import annotations

import pytest

from compaction.core import constraints as pins
from compaction.core.constraints import is_constraint
from compaction.core.messages import Message
from compaction.core.user_words import user_texts
from tests.unit.summarizers.talk import asked, assistant, called, filler, sections, user

WRAPPED = "<system-reminder>\nNever mind the gap.\n</system-reminder>\nPlease fix the login."


def test_user_messages_stand_in_order_word_for_word() -> None:
    talk = asked(user("First wish."), assistant("Done."), user("Second wish,\n\n  indented.\nEnd."), filler())

    assert sections(talk)[6] == "- First wish.\n- Second wish,\n\n    indented.\n  End."


def test_meta_messages_tool_results_and_client_texts_are_no_user_messages() -> None:
    talk = asked(
        user("Caveat of the client", meta=True),
        user(WRAPPED),
        user("<local-command-stdout>cleared</local-command-stdout>"),
        user("<command-name>/clear</command-name>\n<command-args></command-args>"),
        called("Bash", "output of a tool", command="ls"),
        filler(),
    )

    assert sections(talk)[6] == "- Please fix the login."


def test_a_slash_command_stands_as_it_was_typed() -> None:
    command = "<command-message>plan is running</command-message>\n<command-name>/plan</command-name>\n"
    talk = asked(user(f"{command}<command-args>the new importer</command-args>"), filler())

    assert sections(talk)[6] == "- /plan the new importer"


def test_an_attached_image_is_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    message = Message(role="user", content=[{"type": "text", "text": "Like this:"}, image])

    assert sections(asked(message, filler()))[6] == "- Like this:\n\n  [image attached]"


def test_a_long_message_is_cut_with_the_number_of_characters_left_out() -> None:
    pasted = "Here is the log. " + "x" * 9_000 + " What is wrong?"
    quoted = sections(asked(user("hello"), user(pasted), user("bye"), filler(60_000)))[6]

    assert "- Here is the log." in quoted
    assert "What is wrong?" in quoted
    assert " characters left out …]" in quoted
    assert len(quoted) < 4_300


def test_the_newest_messages_win_when_there_is_no_room_for_all() -> None:
    wishes = [user(f"wish number {number}: {'do it well ' * 20}") for number in range(100)]
    quoted = sections(asked(*wishes, max_output_tokens=2_000))[6]

    assert "wish number 99:" in quoted
    assert "wish number 3:" not in quoted
    assert "older or lesser entries left out]" in quoted


def test_answers_to_the_agents_questions_are_words_of_the_user() -> None:
    answer = (
        'User has answered your questions: "Which store?"="Postgres". You can now continue with these answers in mind.'
    )
    talk = asked(user("plan it"), called("AskUserQuestion", answer, questions=[]), filler())

    assert '- [answers to the agent\'s questions] "Which store?"="Postgres".' in sections(talk)[6]


def test_words_beside_a_refusal_are_words_of_the_user() -> None:
    refusal = "The user doesn't want to proceed. To say how to go on, the user said:\nuse the other branch"
    talk = asked(user("push it"), called("Bash", refusal, is_error=True, command="git push"), filler())

    assert "- use the other branch" in sections(talk)[6]


@pytest.mark.parametrize(
    "rule",
    [
        "Never touch the ledger.",
        "Always run the tests first.",
        "You must keep the old API.",
        "Do not rename anything, and don't add files.",
        "Please don't commit.",
        "No new dependencies.",
        "Only use the metrics module that exists.",
        "From now on answer in German.",
        "Keep the public signature unchanged.",
        "Could you please never force-push?",
        "Niemals auf main pushen.",
        "Ne touche jamais au fichier de config.",
        "No modifiques nunca el esquema.",
        "Никогда не трогай этот файл.",
        "不要修改数据库。",
        "絶対に削除しないで。",
        "절대 커밋하지 마",
    ],
)
def test_a_standing_rule_is_recognised_in_many_languages(rule: str) -> None:
    assert is_constraint(rule)


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't think that this is right.",
        "Why don't we see the error?",
        "The test fails since this morning.",
        "Does it always return None?",
        "Can you look at the log?",
        "No, the other one.",
    ],
)
def test_an_ordinary_sentence_is_no_rule(sentence: str) -> None:
    assert not is_constraint(sentence)


def test_rules_stand_first_as_lines_that_the_core_pins() -> None:
    messages = [user("Fix it.\n- Never touch the ledger.\n- Always run the tests."), assistant("ok"), *filler()]
    quoted = sections(asked(messages))[6]

    assert quoted.startswith("- Constraint: Never touch the ledger.\n- Constraint: Always run the tests.\n- Fix it.")
    assert pins.after_summary((), quoted, user_texts(messages)) == ("Never touch the ledger.", "Always run the tests.")


def test_a_rule_over_two_hard_wrapped_lines_is_whole() -> None:
    wrapped = "You must never change the files under the ledger folder,\nbecause they are under audit until June."

    assert f"- Constraint: {wrapped.replace(chr(10), ' ')}\n" in sections(asked(user(wrapped), filler()))[6]


def test_a_rule_inside_pasted_code_is_none() -> None:
    assert "Constraint" not in sections(asked(user("See:\n```\n# never do this\n```"), filler()))[6]


def test_a_rule_said_twice_stands_once() -> None:
    quoted = sections(asked(user("Never push."), assistant("ok"), user("never push!"), filler()))[6]

    assert quoted.count("Constraint:") == 1


def test_the_first_and_the_latest_request_and_the_changes_between_them_stand_first() -> None:
    talk = asked(
        user("Put the queue into Redis."),
        assistant("ok"),
        user("How is it going?"),
        assistant("fine"),
        user("Actually, use Postgres instead."),
        assistant("ok"),
        user("Write the docs."),
        filler(),
    )

    assert sections(talk)[1] == (
        "- First request: Put the queue into Redis.\n"
        "- Later correction or change of mind: Actually, use Postgres instead.\n"
        "- Latest request: Write the docs."
    )


def test_an_interruption_is_no_request() -> None:
    talk = asked(user("[Request interrupted by user]"), user("Do the thing."), filler())

    assert sections(talk)[1] == "- First request: Do the thing."
