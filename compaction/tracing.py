"""Traces: spans of requests, attempts and model calls, sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names.

Without that setting nothing is recorded and nothing is loaded but OpenTelemetry's own small API. Spans hold ids, counts
and codes, never content: an exception goes into one as its code alone, because its text may quote what it choked on.
The provider is ours and not OpenTelemetry's global one, so that no library adds spans that tell more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from opentelemetry.context import Context
from opentelemetry.trace import (
    NoOpTracer,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from compaction import __version__
from compaction.errors import CompactdError
from compaction.settings import SettingsError
from compaction.telemetry import MAX_VALUE_CHARS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

Fact = str | int | float | bool | Sequence[str]
Facts = Mapping[str, Fact | None]  # what is None is left out
Kind = Literal["internal", "server", "client", "consumer"]

SCOPE = "compactd"
PATH = "/v1/traces"  # OTLP over HTTP: the signal's path below the collector's address
EXPORT_SECONDS = 10.0  # OpenTelemetry's own default for one try to send a batch
_NOBODY: Final = NoOpTracer()
_CARRIER = TraceContextTextMapPropagator()
_MISSING = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the extra `otel` is not installed. Install it, or unset the variable."
)


@dataclass(slots=True)
class _Tracing:
    """This process's tracer; `provider` is None while nothing is recorded."""

    tracer: Tracer = _NOBODY
    provider: TracerProvider | None = None


_own = _Tracing()


class OpenSpan:
    """A span that is not over yet."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def name(self, name: str) -> None:
        """Gives it a better name."""
        self._span.update_name(name)

    def tell(self, facts: Facts) -> None:
        """Adds attributes."""
        for name, value in facts.items():
            if value is not None:
                self._span.set_attribute(name, _short(value))

    def failed(self, code: str) -> None:
        """Marks it as failed for a reason of a few letters."""
        self._span.set_attribute("error.type", code)
        self._span.set_status(Status(StatusCode.ERROR, code))


def _short(value: Fact) -> Fact:
    """Ids and codes are short; a longer text is content that slipped in."""
    return value[:MAX_VALUE_CHARS] if isinstance(value, str) else value


def configure(endpoint: str | None, *, service: str) -> None:
    """Sends this process's spans to the collector at `endpoint`; None: nowhere.

    What else OpenTelemetry's SDK reads from its own variables (headers, sampler, batches) holds too. Raises
    SettingsError when the extra `otel` is not installed.
    """
    if endpoint is None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingsError(_MISSING) from None
    resource = Resource.create({"service.name": service, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint.rstrip("/") + PATH, timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    use(provider)


def use(provider: TracerProvider | None) -> None:
    """Records spans with `provider` from now on; None: nobody does."""
    _own.provider = provider
    _own.tracer = _NOBODY if provider is None else provider.get_tracer(SCOPE, __version__)


def close() -> None:
    """Sends what is left, at most as long as one try takes, and records no more."""
    provider = _own.provider
    use(None)
    if provider is not None:
        provider.shutdown()


@contextmanager
def span(name: str, kind: Kind, facts: Facts, *, traceparent: str | None = None) -> Iterator[OpenSpan]:
    """A span around the block: a server or consumer goes on with `traceparent` or begins a trace, others are children.

    An exception ends it as failed, by the error's code or else its type; a cancellation is no failure.
    """
    above: Context | None = None
    if kind in {"server", "consumer"}:  # what is open here is another one's: connections and loops are used again
        above = _CARRIER.extract({"traceparent": traceparent or ""}, context=Context())
    told = {name: _short(value) for name, value in facts.items() if value is not None}
    begun = _own.tracer.start_span(name, context=above, kind=SpanKind[kind.upper()], attributes=told)
    with use_span(begun, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        opened = OpenSpan(begun)
        try:
            yield opened
        except Exception as error:
            opened.failed(error.code if isinstance(error, CompactdError) else type(error).__name__)
            raise


def tell(facts: Facts) -> None:
    """Adds attributes to the span that is open here, if one is."""
    OpenSpan(get_current_span()).tell(facts)


def current_traceparent() -> str | None:
    """The open span as W3C writes it, for whoever goes on elsewhere; None while nothing is recorded."""
    carrier: dict[str, str] = {}
    if _own.provider is not None:
        _CARRIER.inject(carrier)
    return carrier.get("traceparent")
