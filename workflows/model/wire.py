"""How the properties of a resource type are declared: structs with the wire's own names."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")
Maybe: TypeAlias = (
    T | UnsetType | None
)  # absent, null or a value; null clears in PATCH and counts as absent in PUT


class Properties(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Names below are wire names. Read-only ones are ignored when a client sends them back."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset()
    WRITE_ONLY: ClassVar[frozenset[str]] = frozenset()  # sealed on arrival, never shown
    REQUIRED: ClassVar[frozenset[str]] = frozenset()  # on PUT
    ABOUT: ClassVar[Mapping[str, str]] = {}  # descriptions, for the OpenAPI document


class Sku(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: Maybe[str] = UNSET
    tier: Maybe[str] = UNSET
    size: Maybe[str] = UNSET
    family: Maybe[str] = UNSET
    capacity: Maybe[int] = UNSET


class Identity(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    type: Maybe[str] = UNSET
    tenant_id: Maybe[str] = UNSET
    principal_id: Maybe[str] = UNSET
    user_assigned_identities: Maybe[dict[str, Any]] = UNSET
