from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from compaction import telemetry
from compaction.errors import NotFound

SECRET = "SECRET-4711 of a transcript"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the log goes; the set-up of the process comes back afterwards."""
    root = logging.getLogger()
    before = (root.handlers, root.level)
    output = io.StringIO()
    telemetry.configure("info", service="test", stream=output)
    yield output
    root.handlers, level = before
    root.setLevel(level)
    structlog.reset_defaults()


def fail() -> None:
    raise ValueError(SECRET)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line(stream: io.StringIO) -> None:
    telemetry.logger("api").info("request", status=200)
    (line,) = lines(stream)
    assert (line["event"], line["part"], line["service"], line["level"], line["status"]) == (
        "request",
        "api",
        "test",
        "info",
        200,
    )
    assert line["timestamp"].endswith("Z")


def test_lines_below_the_level_are_left_out(stream: io.StringIO) -> None:
    telemetry.logger("api").debug("chatter")
    logging.getLogger("elsewhere").debug("chatter")
    assert lines(stream) == []


def test_the_text_of_an_exception_is_never_written(stream: io.StringIO) -> None:
    try:
        fail()
    except ValueError:
        telemetry.logger("api").exception("failed")
        logging.getLogger("elsewhere").exception("failed")
    ours, foreign = lines(stream)
    for line in (ours, foreign):
        assert line["error"] == "ValueError"
        assert line["at"][-1].endswith(" fail")
    assert SECRET not in stream.getvalue()


def test_a_traceback_inside_a_librarys_message_is_left_out(stream: io.StringIO) -> None:
    logging.getLogger("library").error("It broke.\nTraceback (most recent call last):\n  ValueError: %s", SECRET)
    assert lines(stream)[0]["event"] == "It broke.\n(a traceback was left out)"
    assert SECRET not in stream.getvalue()


def test_our_own_errors_keep_their_text(stream: io.StringIO) -> None:
    telemetry.logger("api").warning("refused", exc_info=NotFound("There is no job."))
    (line,) = lines(stream)
    assert (line["error"], line["code"], line["message"]) == ("NotFound", "not_found", "There is no job.")


def test_a_long_value_is_cut(stream: io.StringIO) -> None:
    telemetry.logger("api").info("request", route="x" * 5_000)
    assert len(lines(stream)[0]["route"]) == telemetry.MAX_VALUE_CHARS + 1


def test_lines_of_libraries_are_json_too(stream: io.StringIO) -> None:
    logging.getLogger("library").warning("it took %d s", 3)
    (line,) = lines(stream)
    assert (line["event"], line["part"], line["level"]) == ("it took 3 s", "library", "warning")


def test_the_folders_of_the_machine_stay_out_of_places() -> None:
    with pytest.raises(ValueError, match="SECRET") as caught:
        fail()
    assert all(place.count("/") <= 2 for place in telemetry.failure(caught.value)["at"])


def test_within_a_traced_piece_of_work_each_line_names_the_trace(stream: io.StringIO) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with telemetry.traced(f"00-{trace}-00f067aa0ba902b7-01"):
        telemetry.logger("worker").info("job.finished")
    for given in (None, "broken"):
        with telemetry.traced(given):
            telemetry.logger("worker").info("job.finished")
    traced, *others = lines(stream)
    assert traced["trace_id"] == trace
    assert not [line for line in others if "trace_id" in line]


def test_a_warning_is_one_line_that_tells_its_place_and_not_its_text(stream: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        telemetry.configure("info", service="test", stream=stream)
        warnings.warn(f"cannot read {SECRET}", RuntimeWarning, stacklevel=1)

    (line,) = lines(stream)
    assert (line["event"], line["category"], line["level"]) == ("warning", "RuntimeWarning", "warning")
    assert "test_telemetry.py:" in line["at"]
    assert SECRET not in stream.getvalue()


def test_within_a_job_each_line_has_its_ids(stream: io.StringIO) -> None:
    with telemetry.traced(None, job_id="j1", session_id="s1"):
        telemetry.logger("hooks").info("hook.called")
    telemetry.logger("hooks").info("idle")

    inside, outside = lines(stream)
    assert (inside["job_id"], inside["session_id"]) == ("j1", "s1")
    assert "job_id" not in outside
