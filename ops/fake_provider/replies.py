"""From a step of the script to the bytes of the reply, streamed or whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from compaction.core import jsonbytes
from ops.fake_provider import plan, sse
from ops.fake_provider.counting import tokens_in_text
from ops.fake_provider.plan import Plan
from ops.fake_provider.script import Script, Step, good_summary_text

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
_STATUS_OF_TYPE = {  # without streaming an error has the status that belongs to its type
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a reply has to know of its request."""

    number: int  # of the request; makes ids
    model: str
    stream: bool
    input_tokens: int

    @property
    def request_id(self) -> str:
        """In the form of the real ones."""
        return f"req_fake{self.number:08d}"


def plan_for(step: Step, asked: Asked, script: Script) -> Plan:
    """The reply. Raw bodies, empty streams and silence go before errors, errors before messages."""
    delay = step.delay_s / script.time_divider
    headers = {"request-id": asked.request_id, **step.headers}
    if step.is_silence:
        return Plan(delay_s=delay, ending="close")
    if step.raw is not None:
        return Plan(delay_s=delay, head=_whole(step.status, step.content_type, headers, step.raw.encode()))
    if step.empty_stream:
        return Plan(delay_s=delay, head=_stream_head(headers) + sse.LAST_CHUNK)
    if step.status >= HTTPStatus.MULTIPLE_CHOICES or step.body is not None:
        return Plan(delay_s=delay, head=_body(step.status, headers, step.body))
    if step.sse_error is not None and not asked.stream:
        return Plan(delay_s=delay, head=_late_error(step.sse_error, headers))
    return (_streamed if asked.stream else _at_once)(step, asked, script, headers)


def error_body(kind: str, message: str) -> dict[str, Any]:
    """An error as the API words it."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def refusal(status: int, kind: str, message: str, asked_number: int) -> Plan:
    """An error outside of any script."""
    headers = {"request-id": f"req_fake{asked_number:08d}"}
    return Plan(head=_body(status, headers, error_body(kind, message)))


def json_reply(value: Mapping[str, Any], asked_number: int) -> Plan:
    """A plain answer."""
    headers = {"request-id": f"req_fake{asked_number:08d}"}
    return Plan(head=_whole(HTTPStatus.OK, JSON, headers, jsonbytes.encode(value)))


def _streamed(step: Step, asked: Asked, script: Script, headers: Mapping[str, str]) -> Plan:
    cut = step.disconnect_after_chars if step.disconnect_after_chars is not None else step.end_after_chars
    blocks = [_cut(block, cut) for block in _blocks(step)]
    chunks = step.chunks or script.chunks
    ticks: list[bytes] = [sse.opening(_message(step, asked, [], output_tokens=1))]
    for index, block in enumerate(blocks):
        first, *others = sse.block(index, block, chunks)
        ticks[-1] += first
        ticks.extend(others)
    pause = step.chunk_delay_s or (script.latency_s / max(1, len(ticks) - 1))
    return Plan(
        delay_s=step.delay_s / script.time_divider,
        head=_stream_head(headers) + ticks[0],
        ticks=ticks[1:] if cut is None and step.sse_error is None else ticks[1:-1],  # the block never stops
        pause_s=pause / script.time_divider,
        tail=_stream_tail(step, asked),
        ending="close" if step.disconnect_after_chars is not None else "keep",
    )


def _stream_tail(step: Step, asked: Asked) -> bytes:
    if step.disconnect_after_chars is not None:
        return b""
    if step.end_after_chars is not None:
        return sse.LAST_CHUNK
    if step.sse_error is not None:
        return sse.error(step.sse_error) + sse.LAST_CHUNK
    usage = {"input_tokens": asked.input_tokens, "output_tokens": _output_tokens(step)}
    return sse.ending(step.stop_reason, step.stop_details, usage) + sse.LAST_CHUNK


def _at_once(step: Step, asked: Asked, script: Script, headers: Mapping[str, str]) -> Plan:
    message = _message(step, asked, _blocks(step), output_tokens=_output_tokens(step))
    message |= {"stop_reason": step.stop_reason}
    if step.stop_details is not None:
        message["stop_details"] = step.stop_details
    body = jsonbytes.encode(message)
    response = _whole(HTTPStatus.OK, JSON, headers, body)
    broken = step.disconnect_after_chars is not None or step.end_after_chars is not None
    return Plan(
        delay_s=(step.delay_s + step.chunk_delay_s * (step.chunks or 0) + script.latency_s) / script.time_divider,
        head=response[: -len(body) // 2] if broken else response,
        ending="close" if broken else "keep",
    )


def _blocks(step: Step) -> list[Mapping[str, Any]]:
    if step.content is not None:
        return list(step.content)
    blocks: list[Mapping[str, Any]] = []
    if step.thinking is not None:
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": "ZmFrZQ=="})
    text = step.after_text if step.sse_error is not None else step.text
    if text is None:
        text = good_summary_text(step.good_summary or {})
    return [*blocks, {"type": "text", "text": text}] if text else blocks


def _cut(block: Mapping[str, Any], chars: int | None) -> Mapping[str, Any]:
    return block if chars is None or block.get("type") != "text" else {**block, "text": block["text"][:chars]}


def _message(step: Step, asked: Asked, content: list[Mapping[str, Any]], *, output_tokens: int) -> dict[str, Any]:
    del step
    usage = {
        "input_tokens": asked.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }
    return {
        "id": f"msg_fake{asked.number:08d}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _output_tokens(step: Step) -> int:
    said = (str(block.get("text") or block.get("thinking") or block.get("input") or "") for block in _blocks(step))
    return max(1, sum(tokens_in_text(text) for text in said))


def _late_error(error: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    status = _STATUS_OF_TYPE.get(str(error.get("type")), HTTPStatus.INTERNAL_SERVER_ERROR)
    return _body(status, headers, {"type": "error", "error": error})


def _body(status: int, headers: Mapping[str, str], body: Any) -> bytes:  # noqa: ANN401 - JSON or text
    if isinstance(body, str) or body is None:
        return _whole(status, "text/plain; charset=utf-8", headers, (body or "").encode())
    return _whole(status, JSON, headers, jsonbytes.encode(body))


def _whole(status: int, kind: str, headers: Mapping[str, str], body: bytes) -> bytes:
    return plan.whole(status, {"content-type": kind, **headers}, body)


def _stream_head(headers: Mapping[str, str]) -> bytes:
    told = {"content-type": EVENTS, "cache-control": "no-cache", "transfer-encoding": "chunked"}
    return plan.head(HTTPStatus.OK, {**told, **headers})
