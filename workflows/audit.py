"""The audit trail as its readers see it: newest first, as far as they may see."""

import re
from datetime import datetime
from typing import Any

from muster.core.errors import InvalidRequest
from muster.core.ids import ResourceId
from workflows.authorization import visible
from workflows.model.resource import Call, Page
from workflows.services import Services
from workflows.store.resources import Q

CLAUSE = re.compile(r"(\w+)\s+(eq|ge|le)\s+'([^']*)'", re.IGNORECASE)
FILTERS = {
    "resourcegroupname": "group",
    "resourceuri": "resource",
    "resourceid": "resource",
    "correlationid": "correlation",
    "caller": "caller",
    "status": "status",
    "operationname": "action",
    "resourceprovider": "provider",
}
NEWEST = 2**62
READ = "Microsoft.Insights/eventtypes/management/values/read"


async def list_page(
    services: Services,
    call: Call,
    scope: ResourceId,
    after: str | None,
    top: int,
    filter: str | None,
) -> Page:
    """Newest first; `filter` is a chain of `field eq|ge|le 'value'` joined by `and`."""
    wanted = parse_filter(filter)
    group = wanted.get("group")
    subscription = scope.subscription and scope.subscription.lower()
    seen = await visible(services, call, READ, scope)
    rows = await services.db.fetch(
        Q.list_audit,
        call.principal.tenant_id,
        subscription,
        int(after) if after else NEWEST,
        top + 1,
        wanted.get("from"),
        wanted.get("to"),
        f"/subscriptions/{subscription}/resourcegroups/{group.lower()}" if group else None,
        (wanted.get("resource") or "").lower() or None,
        wanted.get("correlation"),
        wanted.get("caller"),
        wanted.get("status"),
        wanted.get("action"),
        wanted.get("provider"),
        seen,
    )
    more = str(rows[top - 1]["event_id"]) if len(rows) > top else None
    return Page(items=[shown(dict(row)) for row in rows[:top]], next=more)


def parse_filter(text: str | None) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    # One white-space character on each side: several would be tried at every one of them.
    for clause in re.split(r"\sand\s", text, flags=re.IGNORECASE) if text else []:
        match = CLAUSE.fullmatch(clause.strip())
        name = match[1].lower() if match else ""
        if match and name == "eventtimestamp" and match[2].lower() != "eq":
            wanted["from" if match[2].lower() == "ge" else "to"] = _time(match[3])
        elif match and name in FILTERS and match[2].lower() == "eq":
            wanted[FILTERS[name]] = match[3]
        else:
            raise _unknown(clause)
    return wanted


def shown(row: dict[str, Any]) -> dict[str, Any]:
    at = row["at"].isoformat().replace("+00:00", "Z")
    subscription = row["subscription_key"]
    base = f"/subscriptions/{subscription}" if subscription else ""
    return {
        "id": f"{base}/providers/Microsoft.Insights/eventtypes/management/values/{row['event_id']}",
        "eventDataId": str(row["event_id"]),
        "eventTimestamp": at,
        "submissionTimestamp": at,
        "caller": row["caller"],
        "callerType": row["caller_type"],
        "principalId": row["principal_id"],
        "tokenId": row["token_id"],
        "httpRequest": {"clientIpAddress": row["caller_address"], **row["detail"]},
        "operationName": {"value": row["action"], "localizedValue": row["action"]},
        "status": {"value": row["status"], "localizedValue": row["status"]},
        "resourceId": row["resource_id"],
        "correlationId": row["correlation_id"],
        "operationId": str(row["operation_id"] or row["request_id"]),
        "subscriptionId": subscription,
        "tenantId": row["tenant_id"],
    }


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise _unknown(text) from None
    if at.tzinfo is None:
        raise InvalidRequest(
            f"'{text[:100]}' needs a time zone, such as a final Z.",
            code="InvalidFilter",
            target="$filter",
        )
    return at


def _unknown(clause: str) -> InvalidRequest:
    fields = "eventTimestamp (ge, le), resourceGroupName, resourceUri, correlationId, caller, status, operationName, resourceProvider (eq)"
    return InvalidRequest(
        f"$filter: '{clause[:200]}' is not understood; known: {fields}; joined by and.",
        code="InvalidFilter",
        target="$filter",
    )
