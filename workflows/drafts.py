"""How the body of a PUT or PATCH and the stored resource become the resource that is wanted."""

from typing import Any

import msgspec

from muster.core.ids import ResourceId
from workflows.admission import World
from workflows.model.resource import Body, Resource
from workflows.resource_kind import Draft, Kind, merged, take_secrets
from workflows.store.resources import Content, Stored
from workflows.validation import common


def replaced(id: ResourceId, body: Body, old: Stored | None, kind: Kind) -> Draft:
    """PUT: what is not said is not wanted, but a secret stays until a new one is given."""
    properties, secrets = take_secrets(_without_nulls(body.properties), kind.properties)
    content = Content(
        location=body.location or (old.resource.location if old else None),
        tags=body.tags or {},
        sku=body.sku,
        identity=body.identity,
        kind=body.kind,
        properties=properties,
    )
    return Draft(id, content, secrets, frozenset(old.sealed if old else ()))


def patched(id: ResourceId, body: Body, old: Stored, kind: Kind) -> Draft:
    """PATCH: merge-patch; a tag map replaces all tags."""
    was = old.resource
    patch, secrets = take_secrets(body.properties, kind.properties)
    content = Content(
        location=body.location or was.location,
        tags=was.tags if body.tags is None else body.tags,
        sku=_patched_sku(was.sku, body.sku),
        identity=was.identity if body.identity is None else merged(was.identity, body.identity),
        kind=was.kind,
        properties=merged(was.properties, patch),
    )
    return Draft(id, content, secrets, frozenset(old.sealed))


def _patched_sku(old: dict[str, Any] | None, patch: dict[str, Any] | None) -> dict[str, Any] | None:
    """Another name is another sku: the capacity of the old one does not belong to it."""
    if patch is None:
        return old
    if patch.get("name"):
        return {name: value for name, value in patch.items() if value is not None}
    return merged(old, patch)  # type: ignore[no-any-return]  # objects merge into an object


def filled(draft: Draft, kind: Kind, world: World, old: Resource | None) -> Draft:
    location = draft.content.location
    content = kind.fill(draft, world)
    if location:
        content = msgspec.structs.replace(content, location=common.normal_location(location))
    unusable = kind.unusable(draft, old) if old else frozenset()
    return Draft(draft.id, content, draft.secrets, draft.kept - unusable)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return value
