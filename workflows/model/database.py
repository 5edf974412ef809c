"""A database on a server."""

from typing import Any, ClassVar

from msgspec import UNSET

from workflows.model.server import DeletionPolicy
from workflows.model.wire import Maybe, Properties


class DatabaseProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset(
        {
            "status",
            "provisioningState",
            "databaseId",
            "creationDate",
            "currentServiceObjectiveName",
            "requestedServiceObjectiveName",
            "defaultSecondaryLocation",
            "failoverGroupId",
            "maxLogSizeBytes",
            "earliestRestoreDate",
            "currentSku",
            "currentBackupStorageRedundancy",
            "pausedDate",
            "resumedDate",
            "isInfraEncryptionEnabled",
            "sizeBytes",
            "adopted",
            "conditions",
            "lastError",
        }
    )

    # Azure's, with a meaning here
    elastic_pool_id: Maybe[str] = UNSET
    # Azure's, stored and shown; validation.ineffective refuses what a user could rely on
    create_mode: Maybe[str] = UNSET
    collation: Maybe[str] = UNSET
    max_size_bytes: Maybe[int] = UNSET
    sample_name: Maybe[str] = UNSET
    source_database_id: Maybe[str] = UNSET
    restore_point_in_time: Maybe[str] = UNSET
    source_database_deletion_date: Maybe[str] = UNSET
    recovery_services_recovery_point_id: Maybe[str] = UNSET
    long_term_retention_backup_resource_id: Maybe[str] = UNSET
    recoverable_database_id: Maybe[str] = UNSET
    restorable_dropped_database_id: Maybe[str] = UNSET
    catalog_collation: Maybe[str] = UNSET
    zone_redundant: Maybe[bool] = UNSET
    license_type: Maybe[str] = UNSET
    read_scale: Maybe[str] = UNSET
    high_availability_replica_count: Maybe[int] = UNSET
    secondary_type: Maybe[str] = UNSET
    auto_pause_delay: Maybe[int] = UNSET
    requested_backup_storage_redundancy: Maybe[str] = UNSET
    min_capacity: Maybe[float] = UNSET
    maintenance_configuration_id: Maybe[str] = UNSET
    is_ledger_on: Maybe[bool] = UNSET
    federated_client_id: Maybe[str] = UNSET
    keys: Maybe[dict[str, Any]] = UNSET
    encryption_protector: Maybe[str] = UNSET
    encryption_protector_auto_rotation: Maybe[bool] = UNSET
    preferred_enclave_type: Maybe[str] = UNSET
    use_free_limit: Maybe[bool] = UNSET
    free_limit_exhaustion_behavior: Maybe[str] = UNSET
    source_resource_id: Maybe[str] = UNSET
    manual_cutover: Maybe[bool] = UNSET
    perform_cutover: Maybe[bool] = UNSET
    availability_zone: Maybe[str] = UNSET
    # Ours
    labels: Maybe[dict[str, str]] = UNSET
    deletion_policy: Maybe[DeletionPolicy] = UNSET
