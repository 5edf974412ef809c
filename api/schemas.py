"""JSON schemas of the wire, read off the same structs that the shape checks are compiled from."""

from typing import Any

import msgspec
from msgspec import inspect as types

from api.resource import ResourceType
from api.shape import INT32, INT64
from workflows.model.wire import Identity, Properties, Sku

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time"}
TAGS: Schema = {
    "type": ["object", "null"],
    "additionalProperties": {"type": "string"},
    "description": "At most 50; in PATCH the given tags replace all others.",
}
SHARED: dict[str, Schema] = {
    "SystemData": {
        "type": "object",
        "properties": {
            "createdBy": TEXT,
            "createdByType": TEXT,
            "createdAt": TIME,
            "lastModifiedBy": TEXT,
            "lastModifiedByType": TEXT,
            "lastModifiedAt": TIME,
        },
    },
    "ErrorDetail": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": TEXT,
            "message": TEXT,
            "target": TEXT,
            "details": {"type": "array", "items": {"$ref": "#/components/schemas/ErrorDetail"}},
            "additionalInfo": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": TEXT, "info": {"type": "object"}},
                },
            },
        },
    },
    "ErrorResponse": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"$ref": "#/components/schemas/ErrorDetail"}},
    },
    "OperationStatus": {
        "type": "object",
        "required": ["id", "name", "status", "startTime"],
        "properties": {
            "id": TEXT,
            "name": TEXT,
            "status": {"type": "string", "enum": ["InProgress", "Succeeded", "Failed", "Canceled"]},
            "resourceId": TEXT,
            "startTime": TIME,
            "endTime": TIME,
            "percentComplete": {"type": "number"},
            "error": {"$ref": "#/components/schemas/ErrorDetail"},
        },
    },
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def resource(kind: ResourceType, *, patch: bool) -> Schema:
    """A type's body; clients may send back what is read-only, so it is one schema for both ways."""
    if kind.properties is None:
        assert kind.item is not None
        return dict(kind.item)
    name = kind.label + ("Update" if patch else "")
    members: Schema = {
        "id": {**TEXT, "readOnly": True},
        "name": {**TEXT, "readOnly": True},
        "type": {**TEXT, "readOnly": True},
        "etag": {**TEXT, "readOnly": True},
        "kind": {**TEXT, "readOnly": True},
        "managedBy": {**TEXT, "readOnly": True},
        "systemData": {**ref("SystemData"), "readOnly": True},
    }
    if kind.parts.location:
        members["location"] = {"type": ["string", "null"], "description": "Fixed at creation."}
    if kind.parts.tags:
        members["tags"] = TAGS
    if kind.parts.sku:
        members["sku"] = _nullable(ref("Sku"))
    if kind.parts.identity:
        members["identity"] = _nullable(ref("Identity"))
    body: Schema = {"type": "object", "properties": members, "additionalProperties": False}
    if kind.flat:
        members |= properties(kind, patch=patch)["properties"]
        return body
    members["properties"] = _nullable(ref(f"{name}Properties"))
    if kind.properties.REQUIRED and not patch:
        members["properties"] = ref(f"{name}Properties")
        body["required"] = ["properties"]
    return body


def properties(kind: ResourceType, *, patch: bool) -> Schema:
    assert kind.properties is not None
    schema = struct(kind.properties)
    if patch:
        schema.pop("required", None)
    for name in sorted(kind.properties.READ_ONLY):
        schema["properties"][name] = {**kind.observed.get(name, {}), "readOnly": True}
    return schema


def struct(cls: type[msgspec.Struct]) -> Schema:
    info = types.type_info(cls)
    assert isinstance(info, types.StructType)
    own = cls if issubclass(cls, Properties) else Properties
    members = {field.encode_name: of_type(field.type, field.encode_name) for field in info.fields}
    for name, text in own.ABOUT.items():
        members[name] = _described(members[name], text)
    for name in own.WRITE_ONLY:
        members[name] = {**members[name], "writeOnly": True}
    for name in sorted(own.READ_ONLY):
        members[name] = {"readOnly": True}
    required = {field.encode_name for field in info.fields if field.required}
    required |= own.REQUIRED
    schema: Schema = {"type": "object", "properties": members, "additionalProperties": False}
    if required:
        schema["required"] = sorted(required)
        for name in required:
            members[name] = _not_null(members[name])
    return schema


def of_type(info: types.Type, name: str) -> Schema:
    match info:
        case types.UnionType():
            inner, *words = [t for t in info.types if not isinstance(t, types.NoneType)]
            return _nullable(_or_word(words[0]) if words else of_type(inner, name))
        case types.StructType():
            return ref(info.cls.__name__)
        case types.ListType():
            return {"type": "array", "items": of_type(info.item_type, name)}
        case types.DictType():
            return {"type": "object", "additionalProperties": of_type(info.value_type, name)}
        case _:
            return _scalar(info, name)


def _or_word(words: types.Type) -> Schema:
    """A boolean or one of some words: the only union that a field has."""
    assert isinstance(words, types.LiteralType)
    return {"type": ["boolean", "string"], "enum": [True, False, *words.values]}


def _scalar(info: types.Type, name: str) -> Schema:
    match info:
        case types.LiteralType():
            return {"type": "string", "enum": list(info.values)}
        case types.IntType():
            limit = INT64 if name.endswith("Bytes") else INT32
            return {
                "type": "integer",
                "format": "int64" if limit == INT64 else "int32",
                "minimum": -limit,
                "maximum": limit - 1,
            }
        case _:
            return dict(SIMPLE[type(info)])


def nested(cls: type[msgspec.Struct]) -> dict[str, Schema]:
    """Components for the structs inside a struct."""
    schemas: dict[str, Schema] = {}
    info = types.type_info(cls)
    assert isinstance(info, types.StructType)
    for field in info.fields:
        options = field.type.types if isinstance(field.type, types.UnionType) else (field.type,)
        for each in options:
            option = each.item_type if isinstance(each, types.ListType) else each
            if isinstance(option, types.StructType):
                schemas[option.cls.__name__] = struct(option.cls)
                schemas |= nested(option.cls)
    return schemas


def page(item: Schema) -> Schema:
    return {
        "type": "object",
        "required": ["value"],
        "properties": {
            "value": {"type": "array", "items": item},
            "nextLink": {"type": "string", "format": "uri"},
        },
    }


def envelope_parts() -> dict[str, Schema]:
    return {"Sku": struct(Sku), "Identity": struct(Identity)}


SIMPLE: dict[type[types.Type], Schema] = {
    types.StrType: {"type": "string"},
    types.BoolType: {"type": "boolean"},
    types.FloatType: {"type": "number"},
    types.AnyType: {},
}


def _nullable(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if not schema:
        return schema
    one = schema["type"]
    nullable = {**schema, "type": [*one, "null"] if isinstance(one, list) else [one, "null"]}
    if "enum" in nullable:
        nullable["enum"] = [*nullable["enum"], None]
    return nullable


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text}


def _not_null(schema: Schema) -> Schema:
    plain = dict(schema)
    if isinstance(plain.get("type"), list):
        plain["type"] = plain["type"][0]
    if "enum" in plain:
        plain["enum"] = [each for each in plain["enum"] if each is not None]
    return plain
