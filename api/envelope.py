"""ARM's envelope in both directions: decodes bodies for the workflows, renders resources as JSON."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from api.resource import ResourceType
from api.shape import Check, Findings, Shape, compile_type
from muster.core.errors import refuse
from muster.core.ids import ResourceId
from workflows.model.item import Item
from workflows.model.resource import Body, Resource
from workflows.model.wire import Identity, Properties, Sku

IGNORED = ("systemData", "etag", "kind", "managedBy")  # ours or read-only; clients send them back
TAGS = compile_type(msgspec.inspect.type_info(dict[str, str]), "tags")
TEXT = compile_type(msgspec.inspect.type_info(str), "location")


def read(
    kind: ResourceType, id: ResourceId, document: dict[str, Any], *, merge: bool, size: int = 0
) -> Body:
    """Raises one InvalidRequest with every field that is wrong."""
    form = form_of(kind)
    findings = Findings(merge=False)
    properties = Findings(merge=merge)
    parts: dict[str, Any] = {}
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if name in form.identity:
            _same(findings, name, value, id)
        elif name in form.parts:
            if value is not None:
                parts[name] = form.parts[name](value, name, findings)
            elif name == "tags" and merge:
                parts[name] = {}
        elif name == "properties" and not kind.flat:
            flat = value if value is not None else {}
        elif kind.flat and (name in form.shape.fields or name in form.shape.read_only):
            flat[name] = value
        elif name not in IGNORED:
            findings.add_unknown(name, name, form.known)
    if kind.bodiless and flat:
        findings.add("properties", "The URL has all that is needed: leave the properties out.")
    clean = form.shape(flat, "" if kind.flat else "properties", properties)
    refuse([*findings.errors, *properties.errors])
    return Body(properties=clean, size=size, **parts)


def show(
    kind: ResourceType, resource: Resource, extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": resource.id, "name": resource.name, "type": resource.type}
    parts = kind.parts
    if parts.location:
        shown["location"] = resource.location
    if parts.tags:
        shown["tags"] = resource.tags
    if resource.kind is not None:
        shown["kind"] = resource.kind
    if parts.sku and resource.sku is not None:
        shown["sku"] = resource.sku
    if parts.identity and resource.identity is not None:
        shown["identity"] = resource.identity
    shown["systemData"] = {
        "createdBy": resource.created_by,
        "createdByType": resource.created_by_type,
        "createdAt": resource.created_at,
        "lastModifiedBy": resource.modified_by,
        "lastModifiedByType": resource.modified_by_type,
        "lastModifiedAt": resource.modified_at,
    }
    form = form_of(kind)
    properties = {k: v for k, v in resource.properties.items() if k in kind.visible}
    for outer, inner in form.secret_paths:
        if isinstance(properties.get(outer), dict):
            properties[outer] = {k: v for k, v in properties[outer].items() if k not in inner}
    _overlay(properties, resource.observed, form.shown)
    if extra:
        properties.update(extra)
    if kind.flat:
        properties |= {"subscriptionId": resource.name, "tenantId": resource.tenant_id}
        return shown | properties
    properties["provisioningState"] = resource.provisioning_state
    shown["properties"] = properties
    return shown


def show_item(item: Item) -> dict[str, Any]:
    """What lies in an account is shown as its use case gives it."""
    shown: dict[str, Any] = {"id": item.id, "name": item.name, "type": item.type}
    document = {
        "createdBy": item.created_by,
        "createdAt": item.created_at,
        "lastModifiedBy": item.modified_by,
        "lastModifiedAt": item.modified_at,
    }
    shown["systemData"] = {name: value for name, value in document.items() if value is not None}
    if item.properties:
        shown["properties"] = item.properties
    return shown


def _overlay(properties: dict[str, Any], observed: dict[str, Any], visible: frozenset[str]) -> None:
    """What was found wins; objects such as an endpoint are joined."""
    for name, value in observed.items():
        if name in visible:
            mine = properties.get(name)
            if isinstance(mine, dict) and isinstance(value, dict):
                properties[name] = {**mine, **value}
            else:
                properties[name] = value


class Form:
    """What `read` and `show` need of a type, compiled once."""

    def __init__(self, kind: ResourceType) -> None:
        struct = kind.properties or Properties
        self.shape = Shape(struct)
        self.identity = frozenset({"id", "name", "type"})
        self.parts: dict[str, Check] = {}
        if kind.parts.location:
            self.parts["location"] = TEXT
        if kind.parts.tags:
            self.parts["tags"] = TAGS
        if kind.parts.sku:
            self.parts["sku"] = Shape(Sku)
        if kind.parts.identity:
            self.parts["identity"] = Shape(Identity)
        own = self.shape.fields.keys() if kind.flat else {"properties"}
        self.known = sorted({*self.parts, *self.identity, *own})
        self.secret_paths = tuple(_secret_paths(struct))
        self.shown = self.shape.read_only | kind.visible


@cache
def form_of(kind: ResourceType) -> Form:
    return Form(kind)


def _secret_paths(struct: type[Properties]) -> Iterator[tuple[str, frozenset[str]]]:
    for info in msgspec.structs.fields(struct):
        for option in getattr(info.type, "__args__", ()):
            if isinstance(option, type) and issubclass(option, Properties) and option.WRITE_ONLY:
                yield info.encode_name, option.WRITE_ONLY


def _same(findings: Findings, name: str, value: Any, id: ResourceId) -> None:
    """What the body says of its identity must be what the URL says."""
    if value is None:
        return
    wanted = {"id": id.text, "name": id.name, "type": id.type}[name]
    if not isinstance(value, str) or value.rstrip("/").lower() != wanted.lower():
        findings.add(name, f"The {name} in the body is not the one in the URL: '{wanted}'.")
