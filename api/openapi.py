"""The OpenAPI 3.1 document: what FastAPI finds in the routes, and the bodies and problems that it cannot see."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api.errors import PROBLEM_TYPE
from api.schemas.examples import add_examples, add_named_examples
from api.schemas.problems import Problem

DESCRIPTION = (
    "Asynchronous compaction of LLM agent conversations. Store a session's messages, enqueue a compaction by its id, "
    "wait for the job, and go on with a message list that is far smaller and valid for the API."
)
_REF = "#/components/schemas/{model}"

Extra = dict[str, Any]
UNCHANGED: Extra = {"description": "Unchanged: If-None-Match names this very state"}
_documented: dict[str, type[BaseModel]] = {}


def takes(shape: type[BaseModel], example: dict[str, Any], *others: type[BaseModel]) -> Extra:
    """The document's words on a JSON body that the route reads itself: of `shape`, or of one of the `others`."""
    shapes = (shape, *others)
    _documented.update({one.__name__: one for one in shapes})
    references = [{"$ref": _REF.format(model=one.__name__)} for one in shapes]
    content = {"application/json": {"schema": {"oneOf": references} if others else references[0], "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def takes_bytes(description: str) -> Extra:
    """The document's words on a raw body."""
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def gives(shape: type[BaseModel], description: str, *, example: dict[str, Any] | None = None) -> Extra:
    """One entry of a route's `responses`."""
    answer: Extra = {"model": shape, "description": description}
    if example is not None:
        answer["content"] = {"application/json": {"example": example}}
    return answer


def gives_one_of(description: str, **shapes: type[BaseModel]) -> Extra:
    """The entry of an answer that has one of several shapes, each under the name of its example."""
    _documented.update({shape.__name__: shape for shape in shapes.values()})
    references = [{"$ref": _REF.format(model=shape.__name__)} for shape in shapes.values()]
    examples = {name: {"summary": shape.__name__} for name, shape in shapes.items()}  # `add_named_examples` adds values
    return {
        "description": description,
        "content": {"application/json": {"schema": {"anyOf": references}, "examples": examples}},
    }


def leads_to(parameter: str, source: str, *operations: str) -> Extra:
    """Links of an answer: which calls take the id in its body's `source`; to merge into `gives`."""
    links = {
        operation: {"operationId": operation, "parameters": {parameter: f"$response.body#/{source}"}}
        for operation in operations
    }
    return {"links": links}


def streams(example: str) -> Extra:
    """The words on an answer that can be a stream of events too, to merge into `gives`."""
    return {"content": {"text/event-stream": {"schema": {"type": "string"}, "example": example}}}


def refuses(*statuses: int) -> dict[int | str, Extra]:
    """The problems of a route, to merge into its `responses`; each call with a key may meet 401, 403, 422, 429, 503."""
    _documented[Problem.__name__] = Problem
    content = {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(model=Problem.__name__)}}}
    words = {
        400: "The body is not what its headers say",
        401: "No valid key",
        403: "The key lacks the scope",
        404: "No such thing for this key",
        409: "The state does not allow it",
        413: "The body is too large",
        415: "Not JSON",
        422: "The request is not valid",
        429: "Too many requests of the key, or waiting jobs of the tenant; Retry-After says when to come again",
        503: "Not possible right now; Retry-After says when to come again",
    }
    every = {401, 403, 422, 429, 503, *statuses}
    return {status: {"description": words[status], "content": content} for status in sorted(every)}


def problem_of(shape: type[Problem], description: str) -> Extra:
    """One refusal whose problem has members of its own."""
    _documented[shape.__name__] = shape
    content = {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(model=shape.__name__)}}}
    return {"description": description, "content": content}


def install(app: FastAPI) -> None:
    """Replaces the application's document by one with our bodies and problems in it."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own advice for changing the document


def _document(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    _, definitions = models_json_schema([(model, "validation") for model in _documented.values()], ref_template=_REF)
    known = schema.setdefault("components", {}).setdefault("schemas", {})
    for name, definition in definitions.get("$defs", {}).items():
        known.setdefault(name, definition)
    add_examples(known)
    add_named_examples(schema["paths"], known)
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own error shape; ours are problems
        known.pop(unused, None)
    return schema
