"""Terms of the workflows: a resource, the caller, and the results of use cases."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from fsm.operations import Operation
from muster.core.ids import ResourceId

SUBSCRIPTION = "Microsoft.Resources/subscriptions"
GROUP = "Microsoft.Resources/resourceGroups"
SERVER = "Microsoft.Sql/servers"
DATABASE = "Microsoft.Sql/servers/databases"
POOL = "Microsoft.Sql/servers/elasticPools"
ASSIGNMENT = "Microsoft.Authorization/roleAssignments"
LOCK = "Microsoft.Authorization/locks"
TOKEN = "Microsoft.Authorization/serviceTokens"  # noqa: S105 - a type name

# Query parameters of deletions
FORCED_TYPES = "forceDeletionTypes"
DROP_SCHEMA = "dropSchema"


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request body whose shape was checked: only known, writable fields are left in it."""

    location: str | None = None
    tags: dict[str, str] | None = None
    sku: dict[str, Any] | None = None
    identity: dict[str, Any] | None = None
    kind: str | None = None
    properties: dict[str, Any] = {}
    size: int = 0  # bytes of the request


class PrincipalType(StrEnum):
    USER = "User"
    APPLICATION = "Application"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. Roles are assigned to its id, and to the ids of its groups as those of groups."""

    id: str
    tenant_id: str
    type: PrincipalType = PrincipalType.USER
    name: str = ""
    groups: tuple[str, ...] = ()
    scope: str = "/"  # a service token acts only at or below this key
    token_id: str = ""  # which token it came with; names it without being it
    owner: bool = False  # the local token: Owner at tenant scope without an assignment


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a use case must know of the request beside the resource and the body."""

    principal: Principal
    correlation_id: str
    request_id: str
    method: str
    address: str = ""
    if_match: str | None = None
    if_none_match: str | None = None
    idempotency_key: str | None = None  # from Idempotency-Key; for actions the client's request id
    body_digest: bytes = b""
    query: dict[str, str] = {}  # by the declared names; the API has checked the values

    def flag(self, name: str) -> bool:
        """Of a query parameter that is true or false in whatever case; false where it is not given."""
        return self.query.get(name, "").lower() == "true"


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One row of table `resource`, less its secrets."""

    uid: UUID
    id: str
    type: str
    name: str
    tenant_id: str
    location: str | None
    tags: dict[str, str]
    sku: dict[str, Any] | None
    identity: dict[str, Any] | None
    kind: str | None
    properties: dict[str, Any]
    observed: dict[str, Any]
    provisioning_state: str
    created_at: datetime
    created_by: str
    created_by_type: str
    modified_at: datetime
    modified_by: str
    modified_by_type: str
    row_version: int

    @property
    def resource_id(self) -> ResourceId:
        return ResourceId.parse(self.id)

    @property
    def etag(self) -> str:
        return f'"{self.uid.hex[:8]}-{self.row_version}"'


class Ancestor(msgspec.Struct, frozen=True, kw_only=True):
    """In a list, what the caller may not read but something below it: where that is, and no more."""

    id: str
    name: str
    type: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of PUT, PATCH and actions that change a resource."""

    resource: Resource
    created: bool = False
    operation: Operation | None = None  # None: done at once
    extra: dict[str, Any] = {}  # shown once in this answer only, such as a new token


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    existed: bool
    operation: Operation | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    items: list[Any]
    next: str | None = None  # opaque: where the following page begins
