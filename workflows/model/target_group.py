"""A target group: rules that are resolved to targets at each run."""

from typing import ClassVar, Literal

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties

TargetType = Literal[
    "TargetGroup",
    "SqlDatabase",
    "SqlElasticPool",
    "SqlShardMap",
    "SqlServer",
    "SqlSchema",
    "SqlQuery",
]


class TargetGroupMember(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"targetId"})
    REQUIRED: ClassVar = frozenset({"type"})
    ABOUT: ClassVar = {
        "databaseName": (
            "Of a SqlDatabase or SqlSchema: a name, or a pattern in which * is any text, ? any letter "
            "and a backslash takes the next letter as it is. Other types take a name."
        ),
        "labels": (
            "Of a SqlServer or SqlDatabase: a label selector in the notation of Kubernetes, such as "
            "tier=gold,region in (eu,us),!legacy. Only databases with such labels are included or excluded."
        ),
        "schemaPattern": "A pattern of SQL's LIKE: % is any text, _ any letter.",
    }

    membership_type: Maybe[Literal["Include", "Exclude"]] = UNSET
    type: Maybe[TargetType] = UNSET
    server_name: Maybe[str] = UNSET
    database_name: Maybe[str] = UNSET
    elastic_pool_name: Maybe[str] = UNSET
    shard_map_name: Maybe[str] = UNSET
    refresh_credential: Maybe[str] = UNSET
    # Ours
    schema_pattern: Maybe[str] = UNSET
    query: Maybe[str] = UNSET
    target_group: Maybe[str] = UNSET
    credential: Maybe[str] = UNSET
    labels: Maybe[str] = UNSET
    subscription_id: Maybe[str] = UNSET
    resource_group_name: Maybe[str] = UNSET


class TargetGroupProperties(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"members"})

    members: Maybe[list[TargetGroupMember]] = UNSET
