"""An elastic pool: databases of one server, by membership, list or pattern, that share a budget."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class PerDatabaseSettings(Properties, frozen=True):
    min_capacity: Maybe[float] = UNSET
    max_capacity: Maybe[float] = UNSET
    auto_pause_delay: Maybe[int] = UNSET


class PoolProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"state", "provisioningState", "creationDate"})

    # Azure's, kept and echoed
    max_size_bytes: Maybe[int] = UNSET
    min_capacity: Maybe[float] = UNSET
    per_database_settings: Maybe[PerDatabaseSettings] = UNSET
    zone_redundant: Maybe[bool] = UNSET
    license_type: Maybe[str] = UNSET
    maintenance_configuration_id: Maybe[str] = UNSET
    high_availability_replica_count: Maybe[int] = UNSET
    auto_pause_delay: Maybe[int] = UNSET
    preferred_enclave_type: Maybe[str] = UNSET
    availability_zone: Maybe[str] = UNSET
    # Ours
    databases: Maybe[list[str]] = UNSET
    database_pattern: Maybe[str] = UNSET
    max_connections: Maybe[int] = UNSET
    slots_per_database: Maybe[int] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
