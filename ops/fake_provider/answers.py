"""Which answer a request gets: the routes of the API, and the two with which tests look in and change the script."""

from __future__ import annotations

import hmac
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import msgspec

from compaction.core import jsonbytes
from compaction.summarizers import models
from ops.fake_provider.batches import BATCHES, Batches
from ops.fake_provider.http import Answer, Request
from ops.fake_provider.ledger import MESSAGES, Call, Ledger
from ops.fake_provider.limits import Prompt, over_window, refusal
from ops.fake_provider.plan import Plan
from ops.fake_provider.replies import Asked, json_reply, plan_for
from ops.fake_provider.replies import refusal as error_reply
from ops.fake_provider.script import Script, ScriptProblem, script_from

CALLS = "/__calls"  # GET the ledger, DELETE forgets it; no path of the API begins with two underscores
SCRIPT = "/__script"  # POST replaces the script
COUNT = "/v1/messages/count_tokens"
MODELS = "/v1/models"
_RELEASED = "2026-10-01T00:00:00Z"


class _Envelope(msgspec.Struct):
    """What is needed of a body without decoding its prompt."""

    model: str = "unknown"
    stream: bool = False
    max_tokens: int = 0
    messages: list[msgspec.Raw] = []
    metadata: Any = None


class Answers:
    """Decides; keeps the script, how far it has come, and the ledger."""

    def __init__(self, script: Script, ledger: Ledger) -> None:
        self.ledger = ledger
        self.batches = Batches()
        self.play(script)

    def play(self, script: Script) -> None:
        """Starts this script from its first step."""
        self._script = script
        self._step = 0
        self._played = 0

    def answer(self, request: Request) -> Answer:
        """What `http.Connection` sends."""
        if request.path in {CALLS, SCRIPT}:
            return Answer(self._admin(request), lambda _outcome: None)
        headers, keep = request.headers, self._script.keep_bodies
        call = self.ledger.begin(request.method, request.path, headers, request.body, keep_body=keep)
        reply = self._reply(request, call)
        self.ledger.answered(call)
        return Answer(reply, lambda outcome: self.ledger.end(call, outcome))

    def _admin(self, request: Request) -> Plan:
        if request.path == CALLS:
            if request.method == "DELETE":
                self.ledger.clear()
            return json_reply({"calls": [call.as_line() for call in self.ledger.calls]}, 0)
        try:
            self.play(script_from(jsonbytes.decode(request.body)))
        except (ScriptProblem, ValueError, TypeError) as problem:
            return error_reply(HTTPStatus.BAD_REQUEST, "invalid_request_error", str(problem), 0)
        return json_reply({"ok": True}, 0)

    def _reply(self, request: Request, call: Call) -> Plan:
        if not self._admits(request.headers):
            return error_reply(HTTPStatus.UNAUTHORIZED, "authentication_error", "invalid x-api-key", call.index)
        match request.method, request.path:
            case "POST", "/v1/messages":
                return self._message(request, call)
            case "POST", "/v1/messages/count_tokens":
                return self._count(request, call)
            case _, path if path == BATCHES or path.startswith(BATCHES + "/"):
                return self.batches.answer(request, call.index, self._script, lambda body: self._alone(body, call))
            case "GET", path if path == MODELS or path.startswith(MODELS + "/"):
                return self._models(path.removeprefix(MODELS).strip("/"), call)
        return error_reply(HTTPStatus.NOT_FOUND, "not_found_error", "Not found", call.index)

    def _message(self, request: Request, call: Call) -> Plan:
        try:
            envelope = msgspec.json.decode(request.body, type=_Envelope)
        except msgspec.DecodeError:
            return error_reply(HTTPStatus.BAD_REQUEST, "invalid_request_error", "The body is not valid.", call.index)
        if envelope.max_tokens < 1 or not envelope.messages:
            text = f"{'messages' if envelope.max_tokens else 'max_tokens'}: Field required"
            return error_reply(HTTPStatus.BAD_REQUEST, "invalid_request_error", text, call.index)
        prompt = self._prompt(request)
        step = None
        if prompt is not None:
            step = refusal(self._script.limits, prompt)
            if step is None and self._script.refuse_over_window:
                step = over_window(prompt, self._window(envelope.model))
        self._played += 1
        call.facts["answer"] = "limit" if step else f"step {self._step + 1}"
        if step is None:
            step = self._script.steps[min(self._step, len(self._script.steps) - 1)]
            self._step += 1
        tokens = prompt.tokens if prompt is not None else len(request.body) // 4
        call.facts |= {name: getattr(envelope, name) for name in ("model", "stream", "max_tokens", "metadata")}
        call.facts["input_tokens"] = tokens
        asked = Asked(number=call.index, model=envelope.model, stream=envelope.stream, input_tokens=tokens)
        plan = plan_for(step, asked, self._script)
        return replace(plan, held=True) if self._played in self._script.hold_calls else plan

    def _alone(self, params: bytes, call: Call) -> tuple[int, Any]:
        """What a call with these params would get outside of a batch: its status and decoded body."""
        facts = dict(call.facts)
        head, _, body = self._message(Request("POST", MESSAGES, {}, params), call).head.partition(b"\r\n\r\n")
        call.facts = facts
        return int(head.split(b" ", 2)[1]), jsonbytes.decode(body)

    def _prompt(self, request: Request) -> Prompt | None:
        """The decoded prompt; None when nothing of the script looks at it."""
        if not (self._script.exact_usage or self._script.limits or self._script.refuse_over_window):
            return None
        body = jsonbytes.decode(request.body)
        return Prompt(body if isinstance(body, dict) else {}, len(request.body))

    def _count(self, request: Request, call: Call) -> Plan:
        try:
            body = jsonbytes.decode(request.body)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return error_reply(HTTPStatus.BAD_REQUEST, "invalid_request_error", "messages: Field required", call.index)
        if "max_tokens" in body or "stream" in body:
            text = "max_tokens: Extra inputs are not permitted"
            return error_reply(HTTPStatus.BAD_REQUEST, "invalid_request_error", text, call.index)
        return json_reply({"input_tokens": Prompt(body, len(request.body)).tokens}, call.index)

    def _models(self, name: str, call: Call) -> Plan:
        if not name:
            found = [self._model(known) for known in models.known_models()]
            ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"], "has_more": False}
            return json_reply({"data": found, **ends}, call.index)
        if models.canonical(name) not in models.known_models() and name not in self._script.windows:
            return error_reply(HTTPStatus.NOT_FOUND, "not_found_error", f"model: {name}", call.index)
        return json_reply(self._model(name), call.index)

    def _model(self, name: str) -> dict[str, Any]:
        told = {"type": "model", "id": name, "display_name": name, "created_at": _RELEASED, "lifecycle": "active"}
        return told | {"max_input_tokens": self._window(name), "max_tokens": models.limits_for(name).max_output_tokens}

    def _window(self, model: str) -> int:
        return self._script.windows.get(model) or models.limits_for(model).context_window_tokens

    def _admits(self, headers: dict[str, str]) -> bool:
        if self._script.api_key is None:
            return True
        shown = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(shown.encode(), self._script.api_key.encode())


__all__ = ["CALLS", "COUNT", "MESSAGES", "MODELS", "SCRIPT", "Answers"]
