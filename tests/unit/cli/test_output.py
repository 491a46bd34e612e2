from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from compaction.cli import output
from compaction.cli.output import Column


def test_nothing_of_a_transcript_steers_the_terminal() -> None:
    hostile = "a\x1b]0;title\x07b\x1b[2Jc\rd\u202ee\x9bf\x7f\x00"
    shown = output.safe(hostile)
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert "\u202e" not in shown
    assert output.safe("line\n\tnext é 😀") == "line\n\tnext é 😀"


def test_piped_tables_keep_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("JOB", whole=True), Column("SESSION"))
    output.show(output.rows(columns, [("j" * 36, "s" * 200)]))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["JOB" + " " * 35 + "SESSION", "j" * 36 + "  " + "s" * 200]


def test_markup_in_values_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(output.facts([("Session", "[red]x[/red] :smile:")]))
    assert capsys.readouterr().out == "Session  [red]x[/red] :smile:\n"


def test_json_is_readable_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"text": "é\ud83d"})
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"text": "é\ud83d"}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (7_200, "2 h"), (172_800, "2 d")],
)
def test_ages_are_short(seconds: int, shown: str) -> None:
    now = datetime(2026, 1, 10, tzinfo=UTC)
    assert output.age((now - timedelta(seconds=seconds)).isoformat(), now) == shown
