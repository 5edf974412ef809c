"""An example of every request and answer, put together from what the declarations give."""

from typing import Any

from api.endpoint import Endpoint, Kind, Segment

VERSION = "2025-01-01"
OPERATION_ID = "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11"
TIME = "2031-01-01T00:00:00Z"
NAMES = {
    "subscriptionId": "6f1c9a52-3f0e-4f4e-9a57-0d8e6f3b7a11",
    "resourceGroupName": "fleet",
    "serverName": "eu1",
    "databaseName": "tenant_1",
    "elasticPoolName": "gold",
    "locationName": "westeurope",
    "operationId": OPERATION_ID,
    "targetServerName": "eu2",
    "targetDatabaseName": "tenant_1",
}
PATTERNS = {
    "subscriptionId": r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
    "resourceGroupName": r"^[A-Za-z0-9_().-]{0,89}[A-Za-z0-9_()-]$",
    "locationName": r"^[a-z0-9]{1,60}$",
}
SUCCESSES: dict[Kind, tuple[str, ...]] = {
    Kind.PUT: ("200", "201"),
    Kind.PATCH: ("200", "202"),
    Kind.DELETE: ("200", "202", "204"),
    Kind.HEAD: ("204",),
    Kind.GET: ("200", "304"),
    Kind.RESULT: ("200", "202", "204"),
}
MEANINGS = {
    (Kind.PUT, "201"): "Created; with the polling headers it is still being created.",
    (Kind.DELETE, "204"): "There was nothing to delete.",
    (Kind.DELETE, "200"): "Deleted.",
    (Kind.HEAD, "204"): "It exists.",
    (None, "202"): "Accepted or still running; the headers say where to poll.",
    (None, "204"): "Finished; there is nothing to show.",
    (None, "304"): "It is still what If-None-Match says.",
}
SYSTEM = {
    "createdBy": "local",
    "createdByType": "User",
    "createdAt": TIME,
    "lastModifiedBy": "local",
    "lastModifiedByType": "User",
    "lastModifiedAt": TIME,
}


def name(segment: Segment) -> str:
    if segment.owner is not None:
        return segment.owner.name_example
    return NAMES[segment.text]


def name_schema(segment: Segment, *, strict: bool) -> dict[str, Any]:
    """A new name must fit the pattern; asking for one that can't exist is answered with 404."""
    if segment.names:
        return {"type": "string", "enum": list(segment.names)}
    if not strict:
        return {"type": "string", "minLength": 1}
    pattern = segment.owner.pattern if segment.owner else PATTERNS[segment.text]
    return {"type": "string", "pattern": pattern}


def path(endpoint: Endpoint) -> str:
    return "".join(f"/{name(s) if s.is_name else s.text}" for s in endpoint.path)


def request(endpoint: Endpoint) -> Any:
    if endpoint.kind is Kind.PATCH:
        return dict(endpoint.type.patch_example)
    return dict(endpoint.type.example)


def successes(endpoint: Endpoint) -> tuple[str, ...]:
    """The statuses of success, as clients know them."""
    statuses = SUCCESSES.get(endpoint.kind, ("200",))
    long = endpoint.verb is not None and endpoint.verb.long
    if endpoint.kind in {Kind.PATCH, Kind.DELETE} and not long:
        return tuple(status for status in statuses if status != "202")
    if endpoint.kind is Kind.GET and not endpoint.type.versioned:
        return ("200",)
    if endpoint.report and endpoint.report.tagged:
        return SUCCESSES[Kind.GET]
    return statuses


def has_etag(endpoint: Endpoint) -> bool:
    if endpoint.report:
        return endpoint.report.tagged
    if endpoint.act:
        return endpoint.act.method == "PUT"
    kinds = {Kind.GET, Kind.PUT, Kind.PATCH, Kind.RESULT}
    return endpoint.kind in kinds and endpoint.type.versioned


def meaning(endpoint: Endpoint, status: str) -> str:
    special = MEANINGS.get((endpoint.kind, status)) or MEANINGS.get((None, status))
    return special or "Done."


def response(endpoint: Endpoint) -> Any:
    match endpoint.kind:
        case Kind.LIST if endpoint.view:
            return {"value": [dict(endpoint.view.example)]}
        case Kind.LIST:
            return {"value": [_shown(endpoint)]}
        case Kind.ACTION:
            assert endpoint.act
            return dict(endpoint.act.answer)
        case Kind.REPORT:
            assert endpoint.report
            return dict(endpoint.report.example)
        case Kind.STATUS:
            return {
                "id": path(endpoint),
                "name": OPERATION_ID,
                "status": "Succeeded",
                "startTime": TIME,
                "endTime": TIME,
                "percentComplete": 100,
            }
        case _:
            return _shown(endpoint)


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    """The example body as a GET would show it."""
    kind = endpoint.type
    body: dict[str, Any] = dict(kind.example)
    if kind.properties is None:
        return body
    item = path(endpoint)
    if endpoint.kind is Kind.LIST:
        item = f"{item}/{kind.name_example}"
    shown = {"id": item, "name": kind.name_example, "type": kind.arm_type, **body}
    shown["systemData"] = SYSTEM
    if kind.flat:
        return shown
    hidden = kind.properties.WRITE_ONLY
    properties = {k: v for k, v in body.get("properties", {}).items() if k not in hidden}
    properties |= kind.shown_example
    shown["properties"] = (
        properties if kind.inside else {**properties, "provisioningState": "Succeeded"}
    )
    return shown
