"""A PostgreSQL server: registered by its endpoint, or an embedded cluster."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET

from workflows.model.wire import Maybe, Properties

DeletionPolicy = Literal["Retain", "Drop"]


class EndpointProperties(Properties, frozen=True):
    """Where a registered server is and how it is reached; meaning in muster.core.connect."""

    WRITE_ONLY: ClassVar = frozenset({"clientKey"})

    host: Maybe[str] = UNSET
    hosts: Maybe[list[str]] = UNSET
    port: Maybe[int] = UNSET
    ssl_mode: Maybe[Literal["verify-full", "require", "disable"]] = UNSET
    ca_certificate: Maybe[str] = UNSET
    client_certificate: Maybe[str] = UNSET
    client_key: Maybe[str] = UNSET
    maintenance_database: Maybe[str] = UNSET
    pooling: Maybe[Literal["none", "session", "transaction"]] = UNSET
    direct_host: Maybe[str] = UNSET
    target_session_attrs: Maybe[
        Literal["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]
    ] = UNSET
    authentication: Maybe[Literal["scram-sha-256", "md5", "password"]] = UNSET


class ServerProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset(
        {
            "state",
            "provisioningState",
            "fullyQualifiedDomainName",
            "privateEndpointConnections",
            "workspaceFeature",
            "externalGovernanceStatus",
            "serverVersion",
            "embedded",
            "conditions",
            "lastError",
        }
    )
    WRITE_ONLY: ClassVar = frozenset({"administratorLoginPassword"})

    # Azure's, with a meaning here
    administrator_login: Maybe[str] = UNSET
    administrator_login_password: Maybe[str] = UNSET
    # Azure's, stored and shown; validation.ineffective refuses what a user could rely on
    version: Maybe[str] = UNSET
    minimal_tls_version: Maybe[str] = UNSET
    public_network_access: Maybe[str] = UNSET
    primary_user_assigned_identity_id: Maybe[str] = UNSET
    federated_client_id: Maybe[str] = UNSET
    key_id: Maybe[str] = UNSET
    administrators: Maybe[dict[str, Any]] = UNSET
    restrict_outbound_network_access: Maybe[str] = UNSET
    is_ipv6_enabled: Maybe[str] = msgspec.field(default=UNSET, name="isIPv6Enabled")
    retention_days: Maybe[int] = UNSET
    create_mode: Maybe[str] = UNSET
    # Ours
    endpoint: Maybe[EndpointProperties] = UNSET
    max_connections: Maybe[int] = UNSET
    connections_per_second: Maybe[float] = UNSET
    slots_per_database: Maybe[int] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
    deletion_policy: Maybe[DeletionPolicy] = UNSET
    job_credential: Maybe[str] = UNSET
    disabled: Maybe[bool] = UNSET
