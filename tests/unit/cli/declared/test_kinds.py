"""What files may state is what REST takes: the committed document of the API is the measure."""

import json
from pathlib import Path

import pytest

from muster.cli.declared.kinds import (
    CREDENTIALS, JOB, STEP, TARGET_GROUP, WEBHOOK, Array, Flag, Integer, Labels, Number, Object, Reference, Scalar,
    Text, Word,
)  # fmt: skip

SCHEMAS = json.loads((Path(__file__).parents[4] / "openapi/openapi.json").read_text())["components"]["schemas"]  # fmt: skip
OF = {
    "JobCredentialProperties": CREDENTIALS.properties,
    "JobTargetGroupProperties": TARGET_GROUP.properties,
    "JobProperties": JOB.properties,
    "JobStepProperties": STEP,
    "JobWebhookProperties": WEBHOOK.properties,
}
NOT_STATED = {("JobStepProperties", "stepId")}  # it is the place in the list


def types_of(schema):
    type = schema.get("type")
    return {each for each in ([type] if isinstance(type, str) else type or []) if each != "null"}


def resolved(schema):
    """Without references and without null."""
    if "anyOf" in schema:
        (schema,) = (each for each in schema["anyOf"] if each != {"type": "null"})
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def disagreement(field, schema, path):
    schema = resolved(schema)
    types, words = types_of(schema), {each for each in schema.get("enum", []) if each is not None}
    match field:
        case Object(fields=fields):
            yield from fields_of(field, schema, path)
        case Array(of=item):
            if types != {"array"}:
                yield path
            yield from disagreement(item, schema.get("items", {}), f"{path}[]")
        case Word(words=known):
            if set(known) != words:
                yield path
        case Scalar():
            if types not in (set(), {"boolean", "string"}):
                yield path
        case _:
            wanted = {Text: "string", Reference: "string", Flag: "boolean", Integer: "integer",
                      Number: "number", Labels: "object"}[type(field)]  # fmt: skip
            if types != {wanted} or words:
                yield path


def fields_of(object, schema, path):
    writable = {
        name: each
        for name, each in schema["properties"].items()
        if not each.get("readOnly") and not each.get("writeOnly") and (path, name) not in NOT_STATED
    }
    for name in writable.keys() ^ object.fields.keys():
        yield f"{path}.{name}"
    for name in writable.keys() & object.fields.keys():
        yield from disagreement(object.fields[name], writable[name], f"{path}.{name}")
    if set(schema.get("required", [])) != set(object.required):
        yield f"{path}: required"


@pytest.mark.parametrize("name", OF)
def test_files_state_what_rest_takes(name):
    assert list(fields_of(OF[name], SCHEMAS[name], name)) == []


@pytest.mark.parametrize("kind", [CREDENTIALS, WEBHOOK])
def test_a_secret_of_rest_is_only_referred_to(kind):
    schema = SCHEMAS["JobCredentialProperties" if kind is CREDENTIALS else "JobWebhookProperties"]

    assert [name for name, each in schema["properties"].items() if each.get("writeOnly")] == [kind.secret]  # fmt: skip
