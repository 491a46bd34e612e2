"""The supervisor's words reach a reader, and a reader that went away changes nothing."""

from __future__ import annotations

import io
import os

import pytest

from ops.local import main, reporter


def test_lines_are_printed_at_once() -> None:
    stream = io.StringIO()

    reporter(stream)("ready")

    assert stream.getvalue() == "ready\n"


def test_a_reader_that_went_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        report = reporter(stream)

        report("nobody reads this")
        report("nor this")


@pytest.mark.parametrize("arguments", [[], ["down"], ["demo", "one", "two"]], ids=["nothing", "unknown", "too much"])
def test_wrong_usage_ends_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert "usage: python -m ops.local" in capsys.readouterr().err
