"""One endpoint as OpenAPI describes it: parameters, body, answers, links."""

import re
from typing import Any

from api import examples, schemas
from api.endpoint import SKIP_TOKEN, TOP, VERSION, Endpoint, Kind, Segment
from api.paging import MOST
from api.resource import Action
from api.row_formats import CSV, NDJSON
from api.schemas import Schema, ref
from api.versions import PATTERN, Versions

JSON = "application/json"
TEXT = {"type": "string"}
REFUSALS = {
    "400": "The request can never succeed as it is; all wrong fields are in `details`.",
    "401": "No token, or an invalid one.",
    "403": "The caller has no role that allows it here.",
    "404": "The resource does not exist.",
    "429": "Too many requests; Retry-After says when to try again.",
    "503": "A service that is needed is unavailable; the same request can be sent again.",
}
WRITE_REFUSALS = {
    "408": "The body did not arrive in time.",
    "409": "Not possible now, or not in the present state.",
    "412": "If-Match or If-None-Match did not match.",
    "413": "The body is larger than 2 MB.",
    "415": "The body must be application/json in UTF-8, not compressed.",
}
SUMMARY = {
    Kind.PUT: "Creates or replaces a {}.",
    Kind.PATCH: "Changes a {}: merge-patch of the properties, tags replace.",
    Kind.GET: "Gets a {}.",
    Kind.HEAD: "Checks whether a {} exists.",
    Kind.DELETE: "Deletes a {}.",
    Kind.LIST: "Lists resources of type {}, page by page.",
    Kind.STATUS: "The status of a long-running operation on a {}.",
    Kind.RESULT: "The result of a long-running operation on a {}: 202 while it runs.",
}


def operation(endpoint: Endpoint, endpoints: tuple[Endpoint, ...]) -> Schema:
    kind = endpoint.type
    document: Schema = {
        "operationId": endpoint.operation_id,
        "tags": [kind.title],
        "summary": _summary(endpoint),
        "parameters": _parameters(endpoint),
    }
    if endpoint.kind in {Kind.PUT, Kind.PATCH} and not kind.bodiless:
        name = kind.label + ("Update" if endpoint.kind is Kind.PATCH else "")
        document["requestBody"] = _body(ref(name), examples.request(endpoint), required=True)
    elif endpoint.act and endpoint.act.takes:
        schema = ref(f"{kind.label}{endpoint.act.title}")
        document["requestBody"] = _body(
            schema, dict(endpoint.act.example), required=endpoint.act.requires_body
        )
    document["responses"] = _responses(endpoint, endpoints)
    if endpoint.verb and endpoint.verb.long:
        document["x-ms-long-running-operation"] = True
    if endpoint.paged:
        document["x-ms-pageable"] = {"nextLinkName": "nextLink"}
    return document


def _summary(endpoint: Endpoint) -> str:
    if endpoint.act:
        return f"{endpoint.act.title} of a {endpoint.type.singular}."
    if endpoint.view:
        return f"{endpoint.view.title} of a {endpoint.type.singular}."
    if endpoint.feed:
        return f"{endpoint.feed.title} of a {endpoint.type.singular}, as server-sent events."
    if endpoint.report:
        return f"{endpoint.report.title} of a {endpoint.type.singular}."
    return SUMMARY[endpoint.kind].format(endpoint.type.singular)


def _parameters(endpoint: Endpoint) -> list[Schema]:
    parameters: list[Schema] = [
        {
            "name": segment.text,
            "in": "path",
            "required": True,
            "description": _named(segment),
            "schema": examples.name_schema(segment, strict=endpoint.kind is Kind.PUT),
            "example": examples.name(segment),
        }
        for segment in endpoint.path
        if segment.is_name
    ]
    parameters.append(_version(endpoint.versions))
    parameters += [
        {
            "name": each.name,
            "in": "query",
            "description": each.description,
            "schema": dict(each.schema),
        }
        for each in endpoint.query
    ]
    if endpoint.paged:
        if not any(each.name == TOP for each in endpoint.query):
            top = {"type": "integer", "minimum": 1, "maximum": MOST}
            parameters.append(_described(TOP, "query", top))
        parameters.append(_described(SKIP_TOKEN, "query", TEXT))
    if endpoint.feed:
        parameters.append(_described("Last-Event-ID", "header", TEXT))
    if endpoint.method in {"PUT", "PATCH", "DELETE"}:
        parameters.append(_described("If-Match", "header", TEXT))
        key = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        parameters.append(_described("Idempotency-Key", "header", key))
    if endpoint.kind in {Kind.PUT, Kind.GET, Kind.REPORT} and examples.has_etag(endpoint):
        why = "new" if endpoint.kind is Kind.PUT else "changed"
        parameters.append(_described("If-None-Match", "header", TEXT, why))
    return parameters


MEANINGS = {
    TOP: "How many elements a page has at most.",
    SKIP_TOKEN: "Where the page begins; taken from `nextLink`.",
    "Last-Event-ID": "The number of the last event that the client has.",
    "If-Match": "Only if the resource has this ETag; `*`: only if it exists.",
    "Idempotency-Key": "Requests with the same key take effect once.",
    "If-None-Match new": "`*`: only if the resource does not exist.",
    "If-None-Match changed": "304 without a body if the resource still has this ETag.",
    "operationId": "Id of the long-running operation.",
    "locationName": "Where the operation runs.",
    "targetServerName": "Name of the server of the target.",
    "targetDatabaseName": "Name of the database of the target.",
}


def _described(name: str, place: str, schema: Schema, why: str = "") -> Schema:
    meaning = MEANINGS[f"{name} {why}".strip()]
    return {"name": name, "in": place, "description": meaning, "schema": dict(schema)}


def _named(segment: Segment) -> str:
    if segment.text in MEANINGS:
        return MEANINGS[segment.text]
    what = "Id" if segment.text.endswith("Id") else "Name"
    noun = re.sub(r"(Name|Id)$", "", segment.text)
    kind = segment.owner.singular if segment.owner else re.sub("([A-Z])", r" \1", noun).lower()
    return f"{what} of the {kind}."


def _version(versions: Versions) -> Schema:
    schema: Schema = {"type": "string", "enum": list(versions.listed)}
    if versions.dated:
        schema = {"type": "string", "pattern": PATTERN}
        if versions.listed:
            either = [schema, {"type": "string", "enum": list(versions.listed)}]
            schema = {"anyOf": either}
    return {
        "name": VERSION,
        "in": "query",
        "required": True,
        "description": "Version of the API.",
        "schema": schema,
        "example": examples.VERSION,
    }


def _body(schema: Schema, example: Any, *, required: bool) -> Schema:
    return {
        "required": required,
        "content": {JSON: {"schema": schema, "examples": {"typical": {"value": example}}}},
    }


def _responses(endpoint: Endpoint, endpoints: tuple[Endpoint, ...]) -> dict[str, Schema]:
    responses = {status: _success(endpoint, status) for status in examples.successes(endpoint)}
    if endpoint.kind is Kind.PUT:
        for status in ("200", "201"):
            responses[status]["links"] = _links(endpoint, endpoints)
    if endpoint.act and endpoint.act.makes:
        responses["200"]["links"] = _links_to_made(endpoint, endpoint.act, endpoints)
    if endpoint.kind is Kind.HEAD:
        return responses | {
            status: {"description": why, "headers": _headers(REQUEST_ID)}
            for status, why in {**REFUSALS, "default": OTHER}.items()
        }
    statuses = set(REFUSALS)
    if endpoint.kind in {Kind.PUT, Kind.PATCH, Kind.DELETE, Kind.ACTION}:
        statuses |= set(WRITE_REFUSALS)
    if endpoint.kind is Kind.RESULT or endpoint.type.inside or _looks_inside(endpoint):
        statuses.add("409")
    for status in (*sorted(statuses), "default"):
        responses[status] = {"$ref": f"#/components/responses/{status}"}
    return responses


def _looks_inside(endpoint: Endpoint) -> bool:
    return endpoint.feed is not None or (endpoint.view is not None and endpoint.view.inside)


def refusals() -> dict[str, Schema]:
    """The answers that say no, shared by all operations."""
    return {
        status: {
            "description": why,
            "headers": _headers(REQUEST_ID),
            "content": {JSON: {"schema": ref("ErrorResponse")}},
        }
        for status, why in sorted((REFUSALS | WRITE_REFUSALS | {"default": OTHER}).items())
    }


OTHER = "Any other refusal."
REQUEST_ID = ("x-ms-request-id",)
OF_FILES = ("muster-targets", "muster-truncated-targets")  # of CSV and NDJSON
POLLING = ("Azure-AsyncOperation", "Location", "Retry-After")


def _success(endpoint: Endpoint, status: str) -> Schema:
    headers: tuple[str, ...] = REQUEST_ID
    if status in {"200", "201", "304"} and examples.has_etag(endpoint):
        headers = (*headers, "ETag")
    if endpoint.verb and endpoint.verb.long and status != "204":
        headers = (*headers, *POLLING)
    if endpoint.kind in {Kind.STATUS, Kind.RESULT}:
        headers = (*headers, "Retry-After")
    if endpoint.report and endpoint.report.rows:
        headers = (*headers, *OF_FILES)
    answer: Schema = {
        "description": examples.meaning(endpoint, status),
        "headers": _headers(headers),
    }
    if endpoint.feed:
        example = {"typical": {"value": endpoint.feed.example}}
        answer["content"] = {"text/event-stream": {"schema": TEXT, "examples": example}}
        return answer
    schema = _success_schema(endpoint, status)
    if schema is not None:
        example = {"typical": {"value": examples.response(endpoint)}}
        answer["content"] = {JSON: {"schema": schema, "examples": example}}
        if endpoint.report and endpoint.report.rows:
            answer["content"] |= {media: {"schema": {"type": "string"}} for media in (CSV, NDJSON)}
    return answer


def _success_schema(endpoint: Endpoint, status: str) -> Schema | None:
    name = endpoint.type.label
    match endpoint.kind:
        case kind if kind in {Kind.HEAD, Kind.DELETE} or status in {"202", "204", "304"}:
            return None
        case Kind.LIST:
            view = endpoint.view
            return schemas.page(ref(f"{name}{view.title}Item" if view else name))
        case Kind.ACTION:
            assert endpoint.act
            return None if endpoint.act.gives is None else dict(endpoint.act.gives)
        case Kind.REPORT:
            assert endpoint.report
            return ref(f"{name}{endpoint.report.title.removeprefix('Get')}")
        case Kind.STATUS:
            return ref("OperationStatus")
        case _:
            return ref(name)


def _headers(names: tuple[str, ...]) -> Schema:
    return {name: {"schema": {"type": "string"}} for name in names}


def _links(endpoint: Endpoint, endpoints: tuple[Endpoint, ...]) -> Schema:
    """From a creation to what can be done with the thing, for people and for fuzzers."""
    parameters = _same(endpoint)
    return {
        other.kind.value: {"operationId": other.operation_id, "parameters": parameters}
        for other in endpoints
        if other.path == endpoint.path and other.kind in {Kind.GET, Kind.DELETE}
    }


def _links_to_made(endpoint: Endpoint, act: Action, endpoints: tuple[Endpoint, ...]) -> Schema:
    """From an action that makes something to what can be done with that, by its name."""
    links = {}
    for other in endpoints:
        if other.type.label == act.makes and other.kind in {Kind.GET, Kind.ACTION, Kind.REPORT}:
            named = {f"path.{name}": value for name, value in act.makes_in.items()}
            named[f"path.{other.type.parameter}"] = "$response.body#/name"
            parameters = {**_same(endpoint), **named}
            what = other.act or other.report
            links[what.title.lower() if what else other.kind.value] = {
                "operationId": other.operation_id,
                "parameters": parameters,
            }
    return links


def _same(endpoint: Endpoint) -> dict[str, str]:
    names = [segment.text for segment in endpoint.path if segment.is_name]
    parameters = {f"path.{name}": f"$request.path.{name}" for name in names}
    parameters["query.api-version"] = "$request.query.api-version"
    return parameters
