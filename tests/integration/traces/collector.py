"""A collector of traces: takes OTLP over HTTP and keeps the spans."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Seen:
    """One span as it arrived."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    facts: dict[str, Any]
    error: str


@dataclass(slots=True)
class Collector:
    """Listens on loopback until the end of the block; `raw` is every byte that came."""

    spans: list[Seen] = field(default_factory=list)
    raw: bytes = b""
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, body, dict(self.headers.items()))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:  # noqa: ANN401 - whatever it would print
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        """Keeps what one export sent."""
        if path != "/v1/traces":
            return
        self.raw += body
        self.headers.append(headers)
        sent = ExportTraceServiceRequest.FromString(body)
        for resource in sent.resource_spans:
            service = facts_of(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [
                    Seen(
                        service,
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        facts_of(span.attributes),
                        span.status.message,
                    )
                    for span in scope.spans
                ]


def facts_of(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - protobuf's own list
    """Attributes as a mapping."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in attributes}
