"""Whether steps can use the targets of a group, and where a credential can log in: asked of the engine."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from workflows import authorization, engine_requests, items, target_groups, target_servers
from workflows.access import Q, account_of
from workflows.credentials import FAMILY as CREDENTIALS
from workflows.items import present
from workflows.model.resource import Call
from workflows.services import Services
from workflows.target_servers import CODE, ServerName

AFTER = "after"
MOST_SERVERS = 100  # of one test
LONGEST_NAME = 63  # bytes of a database's name
TargetKey = tuple[str, str, str]  # server id, database, schema


async def doctor(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    """Sessions are opened at the targets, so the caller must be allowed to use their servers."""
    after = _cursor(body.get(AFTER), TargetKey)
    await target_servers.check_reached(
        services, call, id, "targetGroups", [id.name], "targetGroupName"
    )
    args = {"targetGroup": id.name}
    if after is not None:
        args[AFTER] = msgspec.json.encode(after).decode()
    action = target_groups.FAMILY.action("doctor/action")
    answer = await engine_requests.ask(services, call, id, "doctor", args, action)
    following = answer.get("next")
    shown: dict[str, Any] = present(
        {
            "count": answer["count"],
            "value": [present(each) for each in answer["value"]],
            "next": None if following is None else _text(following.encode()),
        }
    )
    return shown


async def test(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    """Only servers of the account's directory, and of these only those that the caller may use as targets."""
    wanted, database = body.get("servers"), body.get("databaseName")
    after = _cursor(body.get(AFTER), str)
    refuse(_errors(body))
    here = await items.enter(services, call, id, locks=False)
    if wanted is None:
        scopes = await authorization.scopes_for(
            services, call.principal, target_servers.USE_AS_TARGET
        )
        rows = await services.db.fetch(
            Q.allowed_servers, here.uid, after or "", MOST_SERVERS + 1, scopes
        )
    else:
        rows = await _named(services, call, id, here.uid, wanted)
    servers = rows[:MOST_SERVERS]
    args = {"credential": id.name, "serverIds": [row["id"] for row in servers]}
    if database is not None:
        args["databaseName"] = database
    action = CREDENTIALS.action("test/action")
    answer = await engine_requests.ask(services, call, id, "login", args, action)
    following = servers[-1]["key"] if len(rows) > MOST_SERVERS else None
    shown: dict[str, Any] = present(
        {
            "value": [present(each) for each in answer["value"]],
            "next": following and _text(msgspec.json.encode(following)),
        }
    )
    return shown


async def _named(
    services: Services, call: Call, id: ResourceId, account_uid: Any, wanted: list[str]
) -> list[Any]:
    account = account_of(id)
    names = [ServerName(f"servers[{at}]", name) for at, name in enumerate(wanted)]
    named = await target_servers.check_named(services, call, account, names)
    refuse(named.errors)
    rows = await services.db.fetch(Q.servers_by_uid, account_uid, sorted(named.servers))
    refuse(
        [
            FieldError(
                "servers",
                f"The job account does not use '{row['name']}' as a target. POST …/allowServer adds it.",
                CODE,
            )
            for row in rows
            if not row["allowed"]
        ]
    )
    return list(rows)


def _errors(body: dict[str, Any]) -> list[FieldError]:
    wanted, database = body.get("servers"), body.get("databaseName")
    errors = []
    if wanted is not None and not 1 <= len(wanted) <= MOST_SERVERS:
        errors.append(FieldError("servers", f"Name 1 to {MOST_SERVERS} servers, or leave it out."))
    if wanted is not None and AFTER in body:
        errors.append(FieldError(AFTER, "Only a test of all servers has several pages."))
    if database is not None and not 1 <= len(database.encode()) <= LONGEST_NAME:
        errors.append(FieldError("databaseName", f"A name has 1 to {LONGEST_NAME} bytes."))
    if database is not None and "\0" in database:
        errors.append(FieldError("databaseName", "A name has no character NUL."))
    return errors


def _text(cursor: bytes) -> str:
    return urlsafe_b64encode(cursor).decode().rstrip("=")


def _cursor(text: str | None, type: Any) -> Any:
    if text is None:
        return None
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.json.decode(raw, type=type)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        cursor = None
    if cursor is None or "\0" in "".join(cursor):
        refuse([FieldError(AFTER, "Expected the value of 'next' of the answer before.")])
    return cursor
