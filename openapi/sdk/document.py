"""The OpenAPI document as the SDKs see it: models with fields, and operations with their parameters."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from openapi.sdk import naming

Schema = dict[str, Any]
ENVELOPE = ("id", "name", "type")  # always shown, so never None


@dataclass(frozen=True)
class Type:
    """`kind` is a JSON type, `time`, `words`, `model` or `any`; a list or map is `of` something."""

    kind: str
    of: "Type | None" = None
    name: str = ""  # of a model or of words
    values: tuple[str, ...] = ()


ANY = Type("any")


@dataclass(frozen=True, kw_only=True)
class Field:
    wire: str
    type: Type
    required: bool = False
    nested: bool = False  # lies in `properties` of the wire
    read_only: bool = False
    about: str = ""


@dataclass(frozen=True)
class Model:
    name: str
    fields: tuple[Field, ...]

    @property
    def resource(self) -> bool:
        """Its properties lie beside the envelope; the runtime moves them on the wire."""
        return any(each.nested for each in self.fields)


@dataclass
class Models:
    """All models by name, each once: what is equal to another one is that one."""

    components: dict[str, Schema]
    models: dict[str, Model] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unnamed: dict[str, str] = field(default_factory=dict)  # a schema without a name → its name here
    shared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.shared = _shared(self.components)
        for name in self.components:
            if name != "ErrorResponse":
                self.component(name)

    def component(self, name: str) -> Type:
        schema = self.components[name]
        if "$ref" in schema:
            return self.component(_named(schema))
        if self.folded(name):
            return ANY
        for other, each in self.components.items():
            if (
                each == schema
                and name != other == f"{naming.model(other)}Properties"
                and not self.folded(other)
            ):
                return self.component(other)
        own = naming.model(name)
        if own not in self.models:
            self.models[own] = Model(own, ())  # it may contain itself
            self.models[own] = Model(own, self.fields(own, schema))
        return Type("model", name=own)

    def folded(self, name: str) -> bool:
        """Whether it is a part of its resource."""
        owner = self.components.get(name.removesuffix("Properties"), {})
        return _properties(owner) == name

    def fields(self, owner: str, schema: Schema) -> tuple[Field, ...]:
        inner = _properties(schema)
        own = [
            self.field(owner, schema, name)
            for name in schema["properties"]
            if not (inner and name == "properties")
        ]
        if inner:
            nested = self.components[inner]
            own += [
                replace(self.field(owner, nested, name), nested=True)
                for name in nested["properties"]
            ]
        return tuple(sorted(own, key=lambda each: (not each.required, each.nested)))

    def field(self, owner: str, schema: Schema, name: str) -> Field:
        one = schema["properties"][name]
        return Field(
            wire=name,
            type=self.type(one, owner, name),
            required=name in schema.get("required", ()) and not _nullable(one),
            read_only=one.get("readOnly", False),
            about=one.get("description", ""),
        )

    def type(self, schema: Schema, owner: str, name: str) -> Type:  # noqa: PLR0911
        """`owner` and `name` call a model that has no name in the document."""
        if "$ref" in schema:
            return self.component(_named(schema))
        if "anyOf" in schema:
            (only,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
            return self.type(only, owner, name)
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else [each for each in kinds if each != "null"]
        if len(kinds) != 1:
            return ANY
        kind = kinds[0]
        if kind == "string" and "enum" in schema:
            words = tuple(each for each in schema["enum"] if each is not None)
            own = self.call(schema, owner, name)
            self.words[own] = words
            return Type("words", name=own, values=words)
        if kind == "string":
            return Type("time") if schema.get("format") == "date-time" else Type(kind)
        if kind == "array":
            return Type("array", self.type(schema.get("items", {}), owner, naming.singular(name)))
        if kind == "object" and "properties" in schema:
            return self.inline(schema, self.call(schema, owner, name))
        if kind == "object":
            values = schema.get("additionalProperties") or {}
            return Type("map", self.type(values, owner, name) if values else ANY)
        return Type(kind)

    def inline(self, schema: Schema, name: str) -> Type:
        for component, each in self.components.items():
            if each == schema:
                return self.component(component)
        if name not in self.models:
            self.models[name] = Model(name, self.fields(name, schema))
        return Type("model", name=name)

    def call(self, schema: Schema, owner: str, name: str) -> str:
        """By the property alone where several models have the same; else with its owner in front."""
        short = naming.pascal(name)
        full = short if short in self.shared else owner.removesuffix("Update") + short
        own = self.unnamed.setdefault(_canonical(schema), full)
        assert list(self.unnamed.values()).count(own) == 1, f"two schemas would be called {own}"
        return own


def _shared(components: dict[str, Schema]) -> frozenset[str]:
    """Names of properties that are the same object or the same words in several components."""
    forms: dict[str, set[str]] = {}
    owners: dict[str, set[str]] = {}

    def walk(schema: Schema, owner: str) -> None:
        for name, each in schema.get("properties", {}).items():
            inner = each.get("items", each)
            if "properties" in inner or "enum" in inner:
                short = naming.pascal(naming.singular(name) if "items" in each else name)
                forms.setdefault(short, set()).add(_canonical(inner))
                owners.setdefault(short, set()).add(owner)
            walk(inner, owner)

    for name, schema in components.items():
        walk(schema, name.removesuffix("Properties").removesuffix("Update"))
    taken = {naming.model(name) for name in components}
    return frozenset(
        short
        for short, each in forms.items()
        if len(each) == 1 and len(owners[short]) > 1 and short not in taken
    )


def _canonical(schema: Schema) -> str:
    plain = {key: each for key, each in schema.items() if key not in {"readOnly", "description"}}
    if "enum" in plain:
        return json.dumps([each for each in plain["enum"] if each is not None])
    return json.dumps(plain, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    wire: str
    name: str
    type: Type
    place: str  # path, query, header or body
    required: bool = False
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class Operation:
    id: str
    group: str
    method: str
    http: str
    path: str
    about: str
    parameters: tuple[Parameter, ...]
    body: Type | None = None  # a model that is sent whole
    gives: Type | None = None
    kind: str = "call"  # call, page, parts, long, stream, exists
    unwrap: bool = False  # an object with `value` alone is shown as that list
    formats: tuple[str, ...] = ()  # in which it can be downloaded
    starts: bool = False  # an execution, which can be waited for


def operations(document: Schema, models: Models) -> tuple[Operation, ...]:
    """All but the two that pollers use."""
    every = [
        _operation(path, method, each, models)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
        if not each["operationId"].endswith(("_GetStatus", "_GetResult"))
    ]
    return tuple(_named_lists(every))


def _named_lists(every: list[Operation]) -> list[Operation]:
    """`list_by_job` is `list` where its scope and group have no other with a shorter path."""
    taken: dict[tuple[str, str], list[str]] = {}
    for each in every:
        if each.method.startswith("list_by_"):
            taken.setdefault((scope(each.path)[0], each.group), []).append(each.path)
    return [
        replace(each, method="list")
        if each.method.startswith("list_by_")
        and each.path == min(taken[scope(each.path)[0], each.group], key=len)
        else each
        for each in every
    ]


def scope(path: str) -> str:
    """The path of the deepest scope that has the operation."""
    return next(each for each in naming.SCOPES if path == each or path.startswith(f"{each}/"))


def _operation(path: str, http: str, document: Schema, models: Models) -> Operation:
    id = document["operationId"]
    group = naming.group(id)
    answer = _answer(document)
    content = answer.get("content", {})
    schema = content.get("application/json", {}).get("schema")
    result, kind, unwrap = None, "call", False
    if document.get("x-ms-long-running-operation"):
        kind = "long"
    if http == "head":
        kind = "exists"
    elif "text/event-stream" in content:
        kind = "stream"
    elif schema:
        members = schema.get("properties", {})
        kind = ("page" if "value" in members else "parts") if _paged(document) else kind
        unwrap = kind == "page" or set(members) == {"value"}
        owner = naming.singular(id.partition("_")[0])
        owner = f"{naming.RESULTS.get(owner, owner)}{id.partition('_')[2]}Result"
        shown = schema["properties"]["value"]["items"] if unwrap else schema
        result = models.type(shown, owner, "" if shown.get("properties") else "value")
    parameters, body = _parameters(document, group, models)
    made = answer.get("links", {}).get("get", {})
    return Operation(
        id=id,
        group=group,
        method=naming.method(id),
        http=http.upper(),
        path=path,
        about=document["summary"],
        parameters=parameters,
        body=body,
        gives=result,
        kind=kind,
        unwrap=unwrap,
        formats=tuple(short for short, media in FORMATS.items() if media in content),
        starts=http == "post" and made.get("operationId") == "JobExecutions_Get",
    )


FORMATS = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


def _parameters(
    document: Schema, group: str, models: Models
) -> tuple[tuple[Parameter, ...], Type | None]:
    """Those of path, query and headers, and the fields of an action's body; or a body as a whole."""
    given = [_parameter(each, group, models) for each in document["parameters"] if _shown(each)]
    body = document.get("requestBody")
    if body is None:
        return tuple(given), None
    type = models.type(body["content"]["application/json"]["schema"], "", "")
    if "If-Match" in {each["name"] for each in document["parameters"]}:
        return tuple(given), type
    given += [
        Parameter(
            wire=each.wire,
            name=naming.snake(each.wire),
            type=each.type,
            place="body",
            required=each.required,
            about=each.about,
        )
        for each in models.models[type.name].fields
    ]
    return tuple(given), None


def _parameter(schema: Schema, group: str, models: Models) -> Parameter:
    name = naming.parameter(schema["name"])
    own = schema["name"].endswith("Name") or schema["name"] == "subscriptionId"
    if schema["in"] == "path" and own and group.endswith(f"{name}s"):
        name = "name"
    if set(schema["schema"].get("enum", ())) == {"true", "false"}:
        type = Type("boolean")
    else:
        type = models.type(schema["schema"], naming.singular(naming.pascal(group)), name)
    if schema["name"] == "$top":
        name = "page_size" if "maximum" in schema["schema"] else "top"
    return Parameter(
        wire=schema["name"],
        name=name,
        type=type,
        place=schema["in"],
        required=schema.get("required", False),
        about=schema.get("description", ""),
    )


def _shown(parameter: Schema) -> bool:
    return parameter["name"] not in naming.HIDDEN and not parameter.get(
        "description", ""
    ).startswith(naming.WITHOUT_EFFECT)


def _answer(document: Schema) -> Schema:
    answer: Schema = document["responses"].get("200", {})
    return answer


def _paged(document: Schema) -> bool:
    return "x-ms-pageable" in document


def _properties(schema: Schema) -> str:
    """The name of the schema of a resource's `properties`."""
    inner = schema.get("properties", {}).get("properties", {})
    options = [inner, *inner.get("anyOf", [])]
    return next((_named(each) for each in options if "$ref" in each), "")


def _named(schema: Schema) -> str:
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def _nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ()) or "null" in schema.get("type", ())
