"""What a target group may have as members."""

from typing import Any

from muster.core import label_selector
from muster.core.errors import FieldError, InvalidRequest
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
ALSO = {
    "SqlSchema": {"databaseName"},
    "SqlServer": {"labels"},
    "SqlDatabase": {"labels"},
}  # what it may say
EVERYWHERE = {"type", "membershipType", "refreshCredential", "credential"}
OF_SERVER = {"subscriptionId", "resourceGroupName"}
ALLOWED = {
    type: EVERYWHERE
    | {*needed, *ALSO.get(type, ())}
    | (OF_SERVER if "serverName" in needed else set())
    for type, needed in FIELDS.items()
}
LONGEST_NAME = 253
LONGEST_QUERY = 100_000


def target_group(name: str, properties: dict[str, Any]) -> list[FieldError]:
    """Nothing is built for a member that is right: there may be ten thousand."""
    members = properties["members"]
    if len(members) > MOST:
        message = f"A target group has at most {MOST} members; {len(members)} were given."
        return [FieldError(MEMBERS, message, "QuotaExceeded")]
    errors = common.item_name(name)
    seen: dict[tuple[Any, ...], int] = {}
    for at, member in enumerate(members):
        if len(errors) >= MOST_ERRORS:
            break
        _check_fields(at, member, errors)
        first = seen.setdefault(_rule(member), at)
        if first != at:
            message = f"It is the same as members[{first}]."
            errors.append(FieldError(f"{MEMBERS}[{at}]", message))
    return errors


def _check_fields(at: int, member: dict[str, Any], errors: list[FieldError]) -> None:
    type = member["type"]
    for name in FIELDS[type]:
        if not member.get(name):
            message, code = f"A member of type {type} needs it.", "InvalidParameterValue"
            errors.append(FieldError(f"{MEMBERS}[{at}].{name}", message, code))
    if not member.keys() <= ALLOWED[type]:
        for name in sorted(member.keys() - ALLOWED[type]):
            message = f"It does not belong to a member of type {type}."
            errors.append(FieldError(f"{MEMBERS}[{at}].{name}", message))
    for name, text in member.items():
        check = TEXTS.get(name)
        if check and text and (why := check(text)):
            errors.append(FieldError(f"{MEMBERS}[{at}].{name}", why))


def _name(text: str) -> str | None:
    if len(text) > LONGEST_NAME or common.invisible(text):
        return f"At most {LONGEST_NAME} characters, none of them invisible."
    return None


def _query(text: str) -> str | None:
    return f"At most {LONGEST_QUERY} characters." if len(text) > LONGEST_QUERY else None


def _labels(text: str) -> str | None:
    try:
        label_selector.parse(text)
    except InvalidRequest as wrong:
        return wrong.message
    return None


TEXTS = {
    "databaseName": common.identifier,
    "serverName": _name,
    "elasticPoolName": _name,
    "shardMapName": _name,
    "schemaPattern": _name,
    "query": _query,
    "labels": _labels,
}


def _rule(member: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two members the same."""
    get = member.get
    return (
        get("membershipType", "Include"),
        member["type"],
        (get("serverName") or "").lower(),
        (get("elasticPoolName") or "").lower(),
        get("databaseName"),
        get("shardMapName"),
        get("schemaPattern"),
        get("query"),
        (get("targetGroup") or "").lower(),
        get("labels") or None,
    )
