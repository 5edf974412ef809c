"""Which servers a job account may use as targets, and whether a caller may use them.

Each request that makes a server a target asks here: `check_named` for the names in it, `check_reached` for
what existing target groups and jobs lead to. What a caller may not read is answered like what is not there.
"""

import difflib
from collections.abc import Iterable
from typing import Literal
from uuid import UUID, uuid4

import msgspec

from fsm import directory
from fsm.directory import Recipient
from fsm.store import resource_by_key
from muster.core import telemetry
from muster.core.db import Row
from muster.core.errors import Conflict, Fault, FieldError, Forbidden, refuse
from muster.core.ids import ResourceId
from nodeagent.items import ReachedServers, ReadReachedServers
from nodeagent.protocol import DirectorySynced, Door, SyncDirectory
from workflows import access, authorization
from workflows.access import Q, account_of
from workflows.accesscache import Access
from workflows.model.resource import SERVER, Call
from workflows.services import Services
from workflows.store import audit

log = telemetry.get(__name__)

USE_AS_TARGET = "Microsoft.Sql/servers/useAsTarget/action"
READ = f"{SERVER}/read"
CODE = "InvalidTargetServer"
MOST_ERRORS = 20  # names that one reply lists: each costs a search for the nearest ones


class ServerName(msgspec.Struct, frozen=True):
    where: str
    name: str
    subscription: str | None = None  # None: the account's


class Named(msgspec.Struct, frozen=True):
    errors: list[FieldError]
    servers: set[UUID]  # that the caller may use


async def demand(
    services: Services, call: Call, action: str, linked: ResourceId, scope: ResourceId
) -> None:
    """Forbidden in ARM's words for a right that is missing on something else than the resource."""
    try:
        await authorization.authorize(services, call, action, linked)
    except Forbidden as denied:
        who = call.principal
        raise Forbidden(
            f"The client '{who.name or who.id}' may write at scope '{scope}'; however, it does not "
            f"have permission to perform action '{action}' on the linked scope '{linked}' or the "
            "linked scope is invalid.",
            code="LinkedAuthorizationFailed",
        ) from denied


async def usable(services: Services, call: Call, server: ResourceId, scope: ResourceId) -> bool:
    """False: the caller may not read it. Forbidden: he may read it and not use it as a target."""
    if await authorization.allows(services, call.principal, USE_AS_TARGET, server):
        return True
    if await authorization.allows(services, call.principal, READ, server):
        await demand(services, call, USE_AS_TARGET, server, scope)
    await audit.denied(services.db, call, USE_AS_TARGET, server)
    return False


async def check_named(
    services: Services, call: Call, account: ResourceId, servers: Iterable[ServerName]
) -> Named:
    """The servers that a request names: any of the account's subscription that the caller may use."""
    named = Named([], set())
    servers = list(servers)
    home = (account.subscription or "").lower()
    inside = {each.name for each in servers if (each.subscription or home).lower() == home}
    rows = await _called(services, call, account, inside) if inside else {}
    usable = {name: await _usable(services, call, rows[name], account) for name in sorted(rows)}
    for each in servers:
        if len(named.errors) == MOST_ERRORS:
            break
        uids = usable.get(each.name, []) if each.name in inside else []
        if len(uids) == 1:
            named.servers.update(uids)
        elif uids:
            message = f"'{each.name[:100]}' is the host name of several servers: name one of them."
            named.errors.append(FieldError(each.where, message, CODE))
        else:
            named.errors.append(await _unknown(services, call, each, account))
    return named


async def check_reached(
    services: Services,
    call: Call,
    id: ResourceId,
    kind: Literal["jobs", "targetGroups"],
    names: Iterable[str],
    where: str,
) -> None:
    """Refuses unless the caller may use every server that these lead to, through nested groups too.

    A name that the directory does not have leads to no target: the engine reports it.
    """
    account = account_of(id)
    everywhere = ResourceId(account.pairs[:1])  # an account uses servers of its subscription alone
    if await authorization.allows(services, call.principal, USE_AS_TARGET, everywhere):
        return
    command = ReadReachedServers(kind=kind, names=tuple(sorted(set(names))))
    try:
        reached: ReachedServers = await access.look(services, call, account, command)
    except Conflict as absent:
        if absent.code != "ControlSchemaMissing":
            raise
        # A control database that was not upgraded yet can't tell: each of its servers counts.
        reached = ReachedServers(names=(), any_server=True)
    here = await access.of(services, call, account)
    if reached.any_server:
        every = await services.db.fetch(Q.allowed_servers, here.uid, "", None, ["/"])
        rows = {row["name"]: [row] for row in every}
    else:
        rows = await _called(services, call, account, reached.names, here.uid)
    for name in sorted(rows):
        if len(await _usable(services, call, rows[name], account)) < len(rows[name]):
            message = "It leads to a server that does not exist or that you may not read."
            refuse([FieldError(where, message, CODE)])


def beyond_token_scope(call: Call) -> Call:
    """For a start: a token that is scoped to a job runs it where the token's roles allow it."""
    who = msgspec.structs.replace(call.principal, scope="/")
    return msgspec.structs.replace(call, principal=who)


async def allow(services: Services, call: Call, here: Access, servers: Iterable[UUID]) -> bool:
    """Puts servers that the caller may use into the account's directory; False: all were there."""
    async with services.db.transaction() as tx:
        new = await tx.fetch(Q.allow_servers, here.uid, list(servers), access.caller(call))
        for row in new:
            await audit.accepted(tx, call, USE_AS_TARGET, ResourceId.parse(row["id"]))
    if new:
        await send_directory(services, call, here)
    return bool(new)


async def send_directory(services: Services, call: Call, here: Access) -> None:
    """At once, so that the same request may name the server. What fails here the runner sends later."""
    account = await resource_by_key(services.db, here.id.key)
    if account is None:
        return

    async def send(command: SyncDirectory) -> DirectorySynced:
        answer: DirectorySynced = await services.agent.run(
            here.uid, uuid4(), command, here.login, caller=access.caller(call), door=Door.REST
        )
        return answer

    recipient = Recipient(here.uid, here.identity, here.public_key)
    try:
        await directory.sync(services, account, recipient, send)
    except Fault as fault:
        log.warning("directory is not sent yet", account=here.uid, why=fault.context or fault.code)


async def _called(
    services: Services,
    call: Call,
    account: ResourceId,
    names: Iterable[str],
    account_uid: UUID | None = None,
) -> dict[str, list[Row]]:
    """By name, as the directory understands it: a server's own name wins over a host name."""
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    rows = await services.db.fetch(Q.servers_called, home, tenant, sorted(names), account_uid)
    called: dict[str, list[Row]] = {}
    for row in rows:
        called.setdefault(row["name"], []).append(row)
    return {
        name: [row for row in matches if row["own_name"]] or matches
        for name, matches in called.items()
    }


async def _usable(services: Services, call: Call, rows: list[Row], scope: ResourceId) -> list[UUID]:
    return [
        row["uid"]
        for row in rows
        if await usable(services, call, ResourceId.parse(row["id"]), scope)
    ]


async def _unknown(
    services: Services, call: Call, server: ServerName, account: ResourceId
) -> FieldError:
    """The same for a server that is not there and for one that the caller may not read."""
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    other = await services.db.fetchval(Q.server_anywhere, server.name.partition(".")[0], tenant)
    outside = other is not None and ResourceId.parse(other)
    if outside and (outside.subscription or "").lower() != home:
        await usable(services, call, outside, account)
    scopes = await authorization.scopes_for(services, call.principal, READ)
    names = [row["name"] for row in await services.db.fetch(Q.server_names, home, tenant, scopes)]
    near = difflib.get_close_matches(server.name.lower()[:100], names, n=3, cutoff=0.4)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    message = (
        f"There is no server '{server.name[:100]}' in the subscription of the job account.{hint}"
    )
    return FieldError(server.where, message, CODE)
