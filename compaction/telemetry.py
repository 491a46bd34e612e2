"""Logs: one JSON line per event, on standard error, with names and numbers only, never content.

Transcripts, prompts and keys are private, and the texts of exceptions quote them (a parser shows what it could not
read, a driver its parameters). So an exception is logged as its type and the places it came through, without its text;
only our own errors, whose texts are written for people (`compaction.errors`), keep theirs.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, TextIO

import structlog

from compaction.core import traces
from compaction.errors import CompactdError

Level = Literal["debug", "info", "warning", "error"]
EventDict = MutableMapping[str, Any]

TRACEBACK = "Traceback (most recent call last)"
MAX_FRAMES = 12  # the innermost places of a traceback: enough to find the line, short enough for one log line
MAX_VALUE_CHARS = 300  # a longer value is content that slipped in; ids, codes and addresses are shorter


def configure(level: Level, *, service: str, stream: TextIO | None = None) -> None:
    """Sets up structlog and the standard library's logging for this process; `service` stands on each line."""
    output = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *_shared(service),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(_Foreign(service))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(number, logging.INFO))  # other people's debug lines quote what they send
    warnings.showwarning = _tell_warning


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger for one part of the product; `name` stands on each line as `part`."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(part=name)
    return bound


@contextmanager
def traced(traceparent: str | None, **ids: str | None) -> Iterator[None]:
    """Within it each log line names the trace that this work belongs to, if it belongs to one, and `ids`."""
    trace_id = traces.trace_id(traceparent)
    with structlog.contextvars.bound_contextvars(**({} if trace_id is None else {"trace_id": trace_id}), **ids):
        yield


def failure(error: BaseException) -> dict[str, Any]:
    """What a log may say of `error`: its type, its code and text when it is ours, and where it came through."""
    facts: dict[str, Any] = {"error": type(error).__name__, "at": _places(error.__traceback__)}
    if isinstance(error, CompactdError):
        facts |= {"code": error.code, "message": error.message}
    return facts


def _shared(service: str) -> list[structlog.types.Processor]:
    def add_service(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        return event

    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_service,
        _without_exception_text,
        _short_values,
    ]


def _without_exception_text(_logger: object, _method: str, event: EventDict) -> EventDict:
    given = event.pop("exc_info", None)
    error = given[1] if isinstance(given, tuple) else (sys.exc_info()[1] if given is True else given)
    if isinstance(error, BaseException):
        event.update(failure(error))
    return event


def _short_values(_logger: object, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str) and len(value) > MAX_VALUE_CHARS:
            event[key] = value[:MAX_VALUE_CHARS] + "…"
    return event


def _tell_warning(  # noqa: PLR0913, PLR0917 - as Python calls it
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of Python's as one line; its text may quote, so it tells where it came from."""
    del message, file, line
    logger("warnings").warning("warning", category=category.__name__, at=f"{_short_path(filename)}:{lineno}")


def _places(traceback: TracebackType | None) -> list[str]:
    places: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{_short_path(code.co_filename)}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return places[-MAX_FRAMES:]


def _short_path(path: str) -> str:
    """The last three parts: enough to find the file, without the machine's folders."""
    return "/".join(path.replace("\\", "/").split("/")[-3:])


def _without_traceback(text: str) -> str:
    """A library's message without a traceback that it wrote into it, because that ends with the exception's text."""
    before, found, _ = text.partition(TRACEBACK)
    return f"{before}(a traceback was left out)" if found else text


class _Foreign(logging.Formatter):
    """Lines of other libraries as JSON: logger, level and their message, without the exception's text."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._processors = _shared(service)
        self._render = structlog.processors.JSONRenderer()

    def format(self, record: logging.LogRecord) -> str:
        """One JSON line."""
        method = record.levelname.lower()
        event: EventDict = {
            "event": _without_traceback(record.getMessage()),
            "part": record.name,
            "exc_info": record.exc_info,
        }
        for processor in self._processors:
            event = processor(None, method, event)  # type: ignore[assignment]  # processors but the last give a mapping
        return str(self._render(None, method, event))
