"""What a target group may have as members."""

from typing import Any

from muster.core.errors import FieldError
from workflows.validation import common

MOST = 10_000
MOST_ERRORS = 50  # as many as an answer shows
MEMBERS = "properties.members"
FIELDS: dict[str, tuple[str, ...]] = {  # what each type must say beside its type
    "SqlServer": ("serverName",),
    "SqlDatabase": ("serverName", "databaseName"),
    "SqlElasticPool": ("serverName", "elasticPoolName"),
    "SqlShardMap": ("serverName", "databaseName", "shardMapName"),
    "SqlSchema": ("serverName", "schemaPattern"),
    "SqlQuery": ("serverName", "databaseName", "query"),
    "TargetGroup": ("targetGroup",),
}
ALSO = {"SqlSchema": {"databaseName"}}  # what it may say
EVERYWHERE = {"type", "membershipType", "refreshCredential", "credential"}
OF_SERVER = {"subscriptionId", "resourceGroupName"}
LONGEST_NAME = 253
LONGEST_QUERY = 100_000


def target_group(name: str, properties: dict[str, Any]) -> list[FieldError]:
    members = properties["members"]
    if len(members) > MOST:
        message = f"A target group has at most {MOST} members; {len(members)} were given."
        return [FieldError(MEMBERS, message, "QuotaExceeded")]
    errors = common.item_name(name)
    seen: dict[tuple[Any, ...], int] = {}
    for at, member in enumerate(members):
        if len(errors) >= MOST_ERRORS:
            break
        where = f"{MEMBERS}[{at}]"
        errors += _member(where, member)
        first = seen.setdefault(_rule(member), at)
        if first != at:
            errors.append(FieldError(where, f"It is the same as members[{first}]."))
    return errors


def _member(where: str, member: dict[str, Any]) -> list[FieldError]:
    type = member["type"]
    needed = FIELDS[type]
    errors = [
        FieldError(f"{where}.{name}", f"A member of type {type} needs it.", "InvalidParameterValue")
        for name in needed
        if not member.get(name)
    ]
    allowed = {*needed, *ALSO.get(type, ()), *EVERYWHERE}
    allowed |= OF_SERVER if "serverName" in needed else set()
    errors += [
        FieldError(f"{where}.{name}", f"It does not belong to a member of type {type}.")
        for name in sorted(member.keys() - allowed)
    ]
    return errors + _texts(where, member)


def _texts(where: str, member: dict[str, Any]) -> list[FieldError]:
    errors = []
    if (database := member.get("databaseName")) and (why := common.identifier(database)):
        errors.append(FieldError(f"{where}.databaseName", why))
    for name in ("serverName", "elasticPoolName", "shardMapName", "schemaPattern"):
        text = member.get(name) or ""
        if len(text) > LONGEST_NAME or common.invisible(text):
            message = f"At most {LONGEST_NAME} characters, none of them invisible."
            errors.append(FieldError(f"{where}.{name}", message))
    if len(member.get("query") or "") > LONGEST_QUERY:
        errors.append(FieldError(f"{where}.query", f"At most {LONGEST_QUERY} characters."))
    return errors


def _rule(member: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two members the same."""
    return (
        member.get("membershipType", "Include"),
        member["type"],
        *((member.get(name) or "").lower() for name in ("serverName", "elasticPoolName")),
        *(member.get(name) for name in ("databaseName", "shardMapName", "schemaPattern", "query")),
        (member.get("targetGroup") or "").lower(),
    )
