from __future__ import annotations

import json
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from api.schemas.compactions import Job
from api.schemas.problems import Problem
from api.schemas.sessions import Session

pytestmark = pytest.mark.anyio

OPEN = {"/healthz", "/readyz", "/metrics"}  # no key is asked for


@pytest.fixture
async def document(stranger: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await stranger.get("/openapi.json")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, operation) for path, item in document["paths"].items() for method, operation in item.items()]


async def test_the_document_is_openapi_3_1_and_lists_every_call(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert {(path, method) for path, method, _ in operations(document)} >= {
        ("/v1/sessions/{session_id}", "put"),
        ("/v1/sessions/{session_id}", "get"),
        ("/v1/sessions/{session_id}/messages", "post"),
        ("/v1/sessions/{session_id}/messages", "get"),
        ("/v1/sessions/import", "post"),
        ("/v1/sessions/{session_id}/state/{kind}/{key}", "put"),
        ("/v1/compactions", "post"),
        ("/v1/compactions", "get"),
        ("/v1/compactions/{job_id}", "get"),
        ("/v1/compactions/{job_id}/result", "get"),
        ("/v1/compactions/{job_id}/events", "get"),
        ("/v1/compactions/{job_id}/cancel", "post"),
        ("/v1/compactions/{job_id}/retry", "post"),
        ("/v1/sessions/{session_id}/breaker", "get"),
        ("/v1/sessions/{session_id}/breaker/reset", "post"),
        ("/v1/breakers", "get"),
        ("/v1/api-keys", "post"),
        ("/v1/api-keys", "get"),
        ("/v1/api-keys/{public_id}", "delete"),
    }


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            here = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return here + [found for item in value.values() for found in references(item)]
        return [found for item in value for found in references(item)] if isinstance(value, list) else []

    known = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in known, reference


async def test_every_call_says_what_it_answers_and_what_it_refuses(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        if path in OPEN:
            continue
        assert operation["security"], path
        assert operation["summary"], path
        responses = operation["responses"]
        assert {"401", "403", "422", "503"} <= set(responses), (path, method)
        for status, response in responses.items():
            if status.startswith(("4", "5")):
                assert list(response["content"]) == ["application/problem+json"], (path, status)


async def test_the_examples_are_what_they_are_examples_of() -> None:
    for model in (Job, Session, Problem):
        extra = model.model_config["json_schema_extra"]
        assert isinstance(extra, dict)
        examples = extra["examples"]
        assert isinstance(examples, list)
        for example in examples:
            assert json.loads(model.model_validate(example).model_dump_json()) == example


async def test_every_json_body_has_an_example(document: dict[str, Any]) -> None:
    bodies = [
        operation["requestBody"]["content"] for _, _, operation in operations(document) if "requestBody" in operation
    ]
    examples = [content["application/json"].get("example") for content in bodies if "application/json" in content]
    assert len(examples) >= 4
    assert all(examples)


async def test_too_many_requests_are_told_of_every_call_with_a_key(document: dict[str, Any]) -> None:
    """A key may be limited as a whole, so each call that asks for one may answer 429."""
    untold = [path for path, _, operation in operations(document) if "429" not in operation["responses"]]
    assert set(untold) <= OPEN


async def test_every_json_answer_has_an_example_that_keeps_its_schema(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for path, method, operation in operations(document):
        for status, response in operation["responses"].items():
            media = response.get("content", {}).get("application/json")
            if media is None:
                continue
            name = media["schema"].get("$ref", "").rsplit("/", 1)[-1]
            examples = [media["example"]] if "example" in media else schemas.get(name, {}).get("examples", [])
            examples = examples or [example["value"] for example in media.get("examples", {}).values()]
            assert examples, (method, path, status)
            whole = {**media["schema"], "components": document["components"]}
            for example in examples:
                jsonschema_rs.validate(whole, example)


async def test_operations_have_names_of_their_own_and_links_lead_to_them(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    for _, _, operation in operations(document):
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                assert link["operationId"] in names
