"""The OpenAPI 3.1 document, built from the declared types: `python -m api.openapi [--check]`."""

import sys
from functools import cache
from pathlib import Path

import msgspec

from api import schemas
from api.endpoint import table
from api.openapi_operation import operation, refusals
from api.resource import ResourceType
from api.resources import RESOURCES
from api.schemas import Schema

FILE = Path(__file__).parent.parent / "openapi" / "openapi.json"


def document(resources: tuple[ResourceType, ...] = RESOURCES) -> Schema:
    paths: dict[str, Schema] = {}
    endpoints = table(resources)
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = operation(
            endpoint, endpoints
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": "2025-01-01",
            "description": "Jobs over fleets of PostgreSQL databases, in the manner of Azure "
            "Resource Manager.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": kind.title} for kind in resources],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": refusals(),
            "schemas": _components(resources),
        },
    }


@cache
def rendered() -> bytes:
    return msgspec.json.format(msgspec.json.encode(document()), indent=2) + b"\n"


def _components(resources: tuple[ResourceType, ...]) -> dict[str, Schema]:
    components = {**schemas.SHARED, **schemas.envelope_parts()}
    for kind in resources:
        name = kind.label
        components[name] = schemas.resource(kind, patch=False)
        if kind.properties is not None:
            components |= schemas.nested(kind.properties)
            if kind.patch:
                components[f"{name}Update"] = schemas.resource(kind, patch=True)
        if kind.properties is not None and not kind.flat:
            components[f"{name}Properties"] = schemas.properties(kind, patch=False)
            if kind.patch:
                components[f"{name}UpdateProperties"] = schemas.properties(kind, patch=True)
        for action in (*kind.actions.values(), *kind.provider_actions.values()):
            if action.takes:
                components[f"{name}{action.title}"] = schemas.struct(action.takes)
                components |= schemas.nested(action.takes)
        for view in kind.views.values():
            components[f"{name}{view.title}Item"] = dict(view.item)
        for report in kind.reports.values():
            components[f"{name}{report.title.removeprefix('Get')}"] = dict(report.gives)
    return dict(sorted(components.items()))


def main(arguments: list[str]) -> int:
    fresh = rendered()
    if "--check" in arguments:
        if FILE.exists() and FILE.read_bytes() == fresh:
            return 0
        sys.stderr.write("openapi/openapi.json is stale: run `make openapi`.\n")
        return 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
