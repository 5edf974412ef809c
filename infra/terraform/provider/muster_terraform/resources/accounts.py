"""Job accounts and what belongs to them beside jobs; role assignments."""

from muster_terraform.attributes import (
    BOOL,
    NUMBER,
    NUMBERS,
    STRINGS,
    Nested,
    field,
    prop,
    secret,
    version_of,
)
from muster_terraform.types import TAGS, ResourceType, location

RUN_ATTEMPTS = Nested(
    (
        field(
            "enabled",
            BOOL,
            required=True,
            optional=False,
            about="A run repeats its targets that have not succeeded.",
        ),
        field("max_successive_without_progress", NUMBER),
        field("max_without_progress", NUMBER),
        field("max_with_progress", NUMBER),
        field("backoff_seconds", NUMBERS),
    )
)
AUTO_DISABLE = Nested(
    (
        field("failures", NUMBER, about="In a row; 0: never."),
        field("days", NUMBER, about="Since the last success."),
        field("warning_failures", NUMBER),
        field("warning_days", NUMBER),
    )
)

JOB_ACCOUNT = ResourceType(
    name="job_account",
    collection="jobAgents",
    parent="server_id",
    attributes=(
        location(None),
        TAGS,
        prop(
            "database_id",
            required=True,
            optional=False,
            replace=True,
            about="Id of its control database.",
        ),
        field(
            "sku_name",
            at="sku.name",
            default="JA100",
            about="JA100 to JA800, or MUSTER with any capacity.",
        ),
        field("capacity", NUMBER, at="sku.capacity", computed=True, about="Tasks at once."),
        prop("default_credential", about="Name of the credential where nothing else names one."),
        prop("halt_after_consecutive_same_error", NUMBER, about="Targets in a row; 0: no limit."),
        prop("run_attempts", RUN_ATTEMPTS, about="Of jobs that say nothing about it."),
        prop("auto_disable", AUTO_DISABLE, about="Of jobs that say nothing about it."),
    ),
    about="A job account: what jobs, target groups and credentials belong to.",
)
CREDENTIAL = ResourceType(
    name="credential",
    collection="credentials",
    parent="account_id",
    in_account=True,
    attributes=(
        prop("username", required=True, optional=False),
        secret(
            "password_wo",
            "password_wo_version",
            at="password",
            about="Sealed on arrival; never shown again.",
        ),
        version_of("password_wo_version", "password_wo"),
        prop(
            "reference",
            about="In the place of a password: env:NAME, file:/path or vault:mount/path#key.",
        ),
        prop(
            "servers",
            STRINGS,
            computed=True,
            about="Names of the servers that it is for; `*` alone: any.",
        ),
    ),
    about="A login that jobs use at targets.",
)
MEMBER = Nested(
    (
        field(
            "type",
            required=True,
            optional=False,
            choices=(
                "SqlDatabase",
                "SqlElasticPool",
                "SqlQuery",
                "SqlSchema",
                "SqlServer",
                "SqlShardMap",
                "TargetGroup",
            ),
        ),
        field("membership_type", default="Include", choices=("Exclude", "Include")),
        field("server_name"),
        field("database_name", about="A name, or a pattern with * and ?."),
        field("elastic_pool_name"),
        field("shard_map_name"),
        field("refresh_credential", about="Id of the credential that lists the members."),
        field("schema_pattern", about="A pattern of SQL's LIKE."),
        field("query", about="Of a SqlQuery: its rows are the targets."),
        field("target_group", about="Id of another target group."),
        field("credential", about="Id of the credential at these targets."),
        field("labels", about="A label selector such as `tier=gold,region in (eu,us),!legacy`."),
        field("subscription_id", about="Of a server in another subscription."),
        field("resource_group_name", about="Of a server in another resource group."),
    ),
    many=True,
)
TARGET_GROUP = ResourceType(
    name="target_group",
    collection="targetGroups",
    parent="account_id",
    in_account=True,
    attributes=(prop("member", MEMBER, at="members"),),
    about="Which databases a job runs on.",
)
WEBHOOK = ResourceType(
    name="webhook",
    collection="webhooks",
    parent="account_id",
    in_account=True,
    attributes=(
        prop("url", required=True, optional=False),
        secret("secret_wo", "secret_wo_version", at="secret", about="The key of the signature."),
        version_of("secret_wo_version", "secret_wo"),
        prop(
            "events",
            STRINGS,
            required=True,
            optional=False,
            choices=(
                "autoDisableWarning",
                "autoDisabled",
                "failed",
                "halted",
                "late",
                "missed",
                "recovered",
                "succeeded",
            ),
        ),
        prop("jobs", STRINGS, blank=[], about="Names; none: all jobs."),
        prop("enabled", BOOL, default=True),
        prop("max_attempts", NUMBER, default=8),
    ),
    about="A receiver of notifications about runs and schedules.",
)
ROLES = {
    "Owner": "8e3af657-a8ff-443c-a75c-2fe8c4bcb635",
    "Contributor": "b24988ac-6180-42a0-ab88-20f7382dd24c",
    "Reader": "acdd72a7-3385-48ef-bd42-f606fba81ae7",
    "Job Operator": "5f0a4c2e-6b1d-4c39-9a57-0d8e6f3b7a11",
}
DEFINITIONS = "/providers/Microsoft.Authorization/roleDefinitions/"
NAMES = {guid: name for name, guid in ROLES.items()}


def _role_name(id: str) -> str:
    guid = id.rsplit("/", 1)[-1].lower()
    return NAMES.get(guid, guid)


ROLE_ASSIGNMENT = ResourceType(
    name="role_assignment",
    collection="providers/Microsoft.Authorization/roleAssignments",
    parent="scope",
    makes_name=True,
    attributes=(
        prop(
            "role", at="roleDefinitionId", required=True, optional=False, replace=True, choices=tuple(ROLES),
            read=_role_name, write=lambda name: DEFINITIONS + ROLES[name],
        ),
        prop("principal_id", required=True, optional=False, replace=True, about="Object id of a user, group or service token."),
        prop("principal_type", default="User", replace=True, choices=("Application", "Group", "ServicePrincipal", "User")),
        prop("description"),
    ),
    about="Who may do what, at the tenant (`/`), a subscription, a resource group or a resource.",
)  # fmt: skip
TYPES = (JOB_ACCOUNT, CREDENTIAL, TARGET_GROUP, WEBHOOK, ROLE_ASSIGNMENT)
