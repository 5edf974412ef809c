"""The committed document is the code's, and says everything that clients need."""

import json
from typing import Any

import jsonschema_rs
import pytest

from api import openapi
from api.endpoint import table
from api.resources import RESOURCES

DOCUMENT: dict[str, Any] = json.loads(openapi.rendered())
OPERATIONS = [
    (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]

# Azure's clients want an answer without a body.
EMPTY = {"JobExecutions_Cancel", "JobStepExecutions_Cancel", "JobTargetExecutions_Cancel"}


def each_operation() -> pytest.MarkDecorator:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    return pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=ids)


def schema(part: dict[str, Any]) -> jsonschema_rs.Validator:
    whole = {**part, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole)


def examples(content: dict[str, Any]) -> list[Any]:
    (media,) = [each for each in content.values() if "examples" in each]
    return [each["value"] for each in media["examples"].values()]


def test_the_committed_document_is_fresh() -> None:
    assert openapi.FILE.read_bytes() == openapi.rendered(), "run `make openapi`"


def test_every_endpoint_is_described_once() -> None:
    described = [operation["operationId"] for _, _, operation in OPERATIONS]

    assert sorted(described) == sorted(each.operation_id for each in table(RESOURCES))


def test_exactly_the_query_parameters_that_are_accepted_are_described() -> None:
    described = {
        operation["operationId"]: {
            each["name"] for each in operation["parameters"] if each["in"] == "query"
        }
        for _, _, operation in OPERATIONS
    }

    assert described == {
        each.operation_id: set(each.accepted.values()) for each in table(RESOURCES)
    }


def test_the_schemas_are_schemas() -> None:
    for name, each in DOCUMENT["components"]["schemas"].items():
        assert schema(each), name


@each_operation()
def test_every_operation_has_examples_that_fit(method: str, path: str, operation: dict) -> None:
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        for value in examples(content):
            schema(content["application/json"]["schema"]).validate(value)
    answers = [
        a["content"]
        for s, a in operation["responses"].items()
        if s.startswith("2") and "content" in a
    ]
    assert answers or method in {"delete", "head"} or operation["operationId"] in EMPTY
    for content in answers:
        assert examples(content)
        (media,) = [each for each in content.values() if "examples" in each]
        for value in examples(content):
            schema(media["schema"]).validate(value)


@each_operation()
def test_every_operation_can_be_refused(method: str, path: str, operation: dict) -> None:
    assert {"400", "401", "403", "404", "429", "503", "default"} <= operation["responses"].keys()
    if method in {"put", "patch", "post", "delete"}:
        assert {"409", "412", "413", "415"} <= operation["responses"].keys()


@each_operation()
def test_every_parameter_of_the_path_is_described(method: str, path: str, operation: dict) -> None:
    in_path = {part[1:-1] for part in path.split("/") if part.startswith("{")}
    described = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
    required = {each["name"] for each in operation["parameters"] if each.get("required")}

    assert in_path == described
    assert "api-version" in required


def test_long_running_operations_say_where_to_poll() -> None:
    for method, path, operation in OPERATIONS:
        if operation.get("x-ms-long-running-operation"):
            status = "201" if method == "put" else "202"
            headers = operation["responses"][status]["headers"]
            assert {"Azure-AsyncOperation", "Location", "Retry-After"} <= headers.keys(), path


def test_secrets_are_write_only() -> None:
    schemas = DOCUMENT["components"]["schemas"]

    assert schemas["ServerProperties"]["properties"]["administratorLoginPassword"]["writeOnly"]
    assert schemas["EndpointProperties"]["properties"]["clientKey"]["writeOnly"]


def test_what_is_refused_is_not_allowed_by_the_schema() -> None:
    for name, each in DOCUMENT["components"]["schemas"].items():
        if name.endswith(("Update", "Properties")):
            assert each["additionalProperties"] is False, name
