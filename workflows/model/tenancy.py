"""Resources above servers: subscriptions, groups, role assignments, service tokens."""

from typing import ClassVar, Literal

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties

SubscriptionState = Literal["Registered", "Unregistered", "Warned", "Suspended", "Deleted"]


class SubscriptionProperties(Properties, frozen=True):
    """ARM's subscription has no `properties`: these stand at the top of its body."""

    READ_ONLY: ClassVar = frozenset({"subscriptionId", "tenantId", "registrationDate"})

    display_name: Maybe[str] = UNSET
    state: Maybe[SubscriptionState] = UNSET


class GroupProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"provisioningState"})


class AssignmentProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset(
        {"createdOn", "updatedOn", "createdBy", "updatedBy", "provisioningState"}
    )
    REQUIRED: ClassVar = frozenset({"roleDefinitionId", "principalId"})

    role_definition_id: Maybe[str] = UNSET
    principal_id: Maybe[str] = UNSET
    principal_type: Maybe[Literal["User", "Group", "ServicePrincipal", "Application"]] = UNSET
    scope: Maybe[str] = UNSET  # that of the URL
    description: Maybe[str] = UNSET


class TokenProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"principalId", "token", "provisioningState"})

    expires_on: Maybe[str] = UNSET
    scope: Maybe[str] = UNSET
    description: Maybe[str] = UNSET


class LockProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"provisioningState"})
    REQUIRED: ClassVar = frozenset({"level"})

    level: Maybe[Literal["CanNotDelete", "ReadOnly"]] = UNSET
    notes: Maybe[str] = UNSET
