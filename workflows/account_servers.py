"""The servers that an account may use as targets: list, allow, disallow."""

from typing import Any

from muster.core.errors import refuse
from muster.core.ids import ResourceId
from nodeagent.items import ReadServerUsers
from workflows import access, authorization, items, resources, server_users, target_servers
from workflows.access import Q
from workflows.accounts import KIND
from workflows.model.resource import Call, Page
from workflows.services import Services
from workflows.store import audit
from workflows.target_servers import ServerName

FORCE = "send force: true"


async def list_page(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """Those that the caller may read."""
    account = await resources.get(services, call, id)
    scopes = await authorization.scopes_for(services, call.principal, target_servers.READ)
    rows = await services.db.fetch(Q.allowed_servers, account.uid, after or "", top + 1, scopes)
    shown = [
        {
            "id": row["id"],
            "name": row["name"],
            "addedBy": row["added_by"],
            "addedAt": row["added_at"].isoformat().replace("+00:00", "Z"),
        }
        for row in rows[:top]
    ]
    return Page(items=shown, next=rows[top - 1]["key"] if len(rows) > top else None)


async def allow(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    here = await items.enter(services, call, id)
    wanted = ServerName("server", body["server"])
    named = await target_servers.check_named(services, call, id, [wanted])
    refuse(named.errors)
    added = await target_servers.allow(services, call, here, named.servers)
    return {"server": body["server"], "allowed": True, "changed": added}


async def disallow(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    """Refused while groups or steps name the server or an execution runs there, unless forced.

    A server that the caller may not read is answered like one that does not exist.
    """
    here = await items.enter(services, call, id)
    await target_servers.check_readable(services, call, id, ServerName("server", body["server"]))
    server = await services.db.fetchrow(Q.allowed_server, here.uid, body["server"])
    if server is None:
        return {"server": body["server"], "allowed": False, "changed": False}
    if not body.get("force"):
        command = ReadServerUsers(server_ids=(server["id"],))
        users = {id: await access.look(services, call, id, command)}
        target = ResourceId.parse(server["id"])
        await server_users.refuse_running(services, call, users, f"server '{target.name}'")
        await server_users.refuse_named(services, call, target, users, FORCE)
    async with services.db.transaction() as tx:
        await tx.execute(Q.disallow_server, here.uid, server["uid"])
        await audit.accepted(tx, call, KIND.action("disallowServer/action"), id)
    await target_servers.send_directory(services, call, here)
    return {"server": body["server"], "allowed": False, "changed": True}
