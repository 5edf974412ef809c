"""What a job account may be; the codes are those that Azure documents for each case."""

from collections.abc import Collection
from typing import Any

from muster.core.enumeration import is_own
from muster.core.errors import FieldError, InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Settings
from workflows.model.account import CAPACITIES, OLD_SKU, OWN_SKU
from workflows.model.resource import DATABASE, Resource
from workflows.resource_kind import Draft
from workflows.validation.common import item_name, within
from workflows.validation.run_attempts import run_attempts

DATABASE_ID = "properties.databaseId"
MOST = 100_000  # concurrent targets of one account
LARGEST_LIMIT = 1_000_000  # of equal errors in a row


def account(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    errors = [*sku(draft.content.sku), *identity(draft.content.identity)]
    if name := draft.properties.get("defaultCredential"):
        errors += item_name(name, "properties.defaultCredential")
    limit = draft.properties.get("haltAfterConsecutiveSameError")
    errors += within("properties.haltAfterConsecutiveSameError", limit, 0, LARGEST_LIMIT)
    errors += run_attempts(draft.properties.get("runAttempts"), defaults=True)
    if old is None:
        errors += control_database(
            draft.properties.get("databaseId"), draft.id.parent, settings.provider_databases
        )
    return errors


def sku(document: dict[str, Any] | None) -> list[FieldError]:
    name, capacity = (document or {}).get("name"), (document or {}).get("capacity")
    if not name:
        return []  # defaulted, or reported as MissingSkuName with the rest of the envelope
    if name == OWN_SKU:
        fits = isinstance(capacity, int) and 1 <= capacity <= MOST
        message = f"Sku {OWN_SKU} needs a capacity from 1 to {MOST}: its concurrent targets."
    elif name in CAPACITIES or name == OLD_SKU:
        wanted = CAPACITIES.get(name, CAPACITIES["JA100"])
        fits = capacity in (None, wanted)
        message = f"Sku {name} has the capacity {wanted}; leave it out, or use {OWN_SKU}."
    else:
        names = ", ".join((*CAPACITIES, OWN_SKU))
        message = f"There is no sku '{name[:80]}'; known: {names}."
        return [FieldError("sku.name", message, "ElasticJobAgentEditionUnsupported")]
    return [] if fits else [FieldError("sku.capacity", message, "SkuMismatchingNameCapacity")]


def identity(document: dict[str, Any] | None) -> list[FieldError]:
    if document is None:
        return []
    errors = []
    kind, assigned = document.get("type"), document.get("userAssignedIdentities") or {}
    if document.get("tenantId"):
        message = "It is decided by the identity itself and must not be sent."
        errors.append(FieldError("identity.tenantId", message, "InvalidIdentityTenantId"))
    if not kind:
        errors.append(FieldError("identity.type", "None or UserAssigned.", "MissingIdentityType"))
    elif kind not in {"None", "UserAssigned"}:
        message = f"'{kind[:80]}' is not accepted here; None or UserAssigned."
        errors.append(FieldError("identity.type", message, "InvalidIdentityType"))
    elif kind == "UserAssigned" and not assigned:
        message = "UserAssigned needs one identity."
        errors.append(
            FieldError("identity.userAssignedIdentities", message, "MissingUserAssignedIdentities")
        )
    if len(assigned) > 1:
        message = "A job account has one identity at most."
        errors.append(
            FieldError("identity.userAssignedIdentities", message, "MultipleIdentitiesOnJobAgent")
        )
    return errors


def control_database(
    text: str | None, server: ResourceId, provider_databases: Collection[str]
) -> list[FieldError]:
    if not text:
        message = f"The resource id of a database of this server is required: {server}/databases/…"
        return [FieldError(DATABASE_ID, message, "InvalidResourceRequestBody")]
    try:
        id = ResourceId.parse(text)
    except InvalidRequest as wrong:
        return [FieldError(DATABASE_ID, wrong.message, "InvalidDatabaseResourceId")]
    if id.type.lower() != DATABASE.lower():
        message = f"Expected the id of a database: {server}/databases/…"
        return [FieldError(DATABASE_ID, message, "InvalidDatabaseResourceId")]
    errors = [
        FieldError(DATABASE_ID, f"The database must be on this server, {server}.", code)
        for code, key in (
            ("MismatchingSubscriptionWithUrl", "subscriptions"),
            ("MismatchingResourceGroupNameWithUrl", "resourceGroups"),
            ("MismatchingServerNameWithUrl", "servers"),
        )
        if (id.named(key) or "").lower() != (server.named(key) or "").lower()
    ]
    if is_own(id.name, provider_databases):
        message = f"'{id.name}' belongs to the server itself."
        errors.append(FieldError(DATABASE_ID, message, "CannotUseReservedDatabaseName"))
    return errors
