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
from muster.core.errors import Conflict, Fault, FieldError, Forbidden, refuse
from muster.core.ids import ResourceId
from muster.core.worker_thread import compute
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
MOST_ERRORS = 20  # names that one request is told about
MOST_HINTS = 3  # of them with the nearest names: a search among all servers of the subscription
NONE = "[]"  # an empty JSON array
SEARCH_COST = 1024  # a comparison of two names costs as much as so many bytes of a body


class ServerName(msgspec.Struct, frozen=True):
    where: str
    name: str
    subscription: str | None = None  # None: the account's


class NamedServer(msgspec.Struct, frozen=True):
    """A server that goes by a name; `own_name`: by its own, which wins over the host name of another."""

    uid: str
    id: str
    name: str
    own_name: bool


class Candidates(msgspec.Struct, frozen=True):
    """The servers that one name stands for: those that the caller may use as targets, and the others."""

    usable: list[str]
    others: list[NamedServer]

    @property
    def count(self) -> int:
        return len(self.usable) + len(self.others)

    @property
    def uids(self) -> set[str]:
        return {*self.usable, *(server.uid for server in self.others)}


class Named(msgspec.Struct, frozen=True):
    errors: list[FieldError]
    servers: set[str]  # uids of those that the caller may use


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
    home = (account.subscription or "").lower()
    inside: dict[ServerName, bool] = {
        each: (each.subscription or home).lower() == home for each in servers
    }
    names = {each.name for each, here in inside.items() if here}
    called = await _called(services, call, account, names) if names else {}
    for each, here in inside.items():
        if len(named.errors) == MOST_ERRORS:
            break
        candidates = called.get(each.name) if here else None
        uids = candidates.usable if candidates else []
        if candidates and candidates.others:
            uids = await _usable(services, call, candidates, account)
        if len(uids) == 1:
            named.servers.update(uids)
        elif uids:
            message = f"'{each.name[:100]}' is the host name of several servers: name one of them."
            named.errors.append(FieldError(each.where, message, CODE))
        else:
            hint = len(named.errors) < MOST_HINTS
            named.errors.append(await _unknown(services, call, each, account, hint=hint))
    return named


async def refuse_others(
    services: Services,
    call: Call,
    account: ResourceId,
    servers: Iterable[ServerName],
    usable: set[str],
) -> None:
    """Host names that another server of the account shares: there they are its name, or mean none."""
    servers, here = list(servers), await access.of(services, call, account)
    called = await _called(services, call, account, {each.name for each in servers}, here.uid)
    refuse(
        [
            FieldError(each.where, _absent(each.name), CODE)
            for each in servers
            if each.name in called and not called[each.name].uids <= usable
        ][:MOST_ERRORS]
    )


async def check_reached(
    services: Services,
    call: Call,
    id: ResourceId,
    kind: Literal["jobs", "outputs", "targetGroups", "plans", "executions"],
    names: Iterable[str],
    where: str,
) -> None:
    """Refuses unless the caller may use every server that these lead to, through nested groups too.

    Executions lead to their stored targets, whatever their groups have become.

    A name that the directory does not have leads to no target: the engine tells of it.
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
        servers = await services.db.fetchval(Q.named_servers, here.uid)
        called = await _judged(services, call, servers)
    else:
        called = await _called(services, call, account, reached.names, here.uid)
    for name in sorted(name for name, candidates in called.items() if candidates.others):
        candidates = called[name]
        if len(await _usable(services, call, candidates, account)) < candidates.count:
            _refuse_reached(where)
    scopes = frozenset(await authorization.scopes_for(services, call.principal, USE_AS_TARGET))
    for server in sorted(reached.server_ids):
        if not authorization.covered(server.lower(), scopes) and not await usable(
            services, call, ResourceId.parse(server), account
        ):
            _refuse_reached(where)


def _refuse_reached(where: str) -> None:
    message = "It leads to a server that does not exist or that you may not read."
    refuse([FieldError(where, message, CODE)])


def beyond_token_scope(call: Call) -> Call:
    """For a start: a token that is scoped to a job runs it where the token's roles allow it."""
    who = msgspec.structs.replace(call.principal, scope="/")
    return msgspec.structs.replace(call, principal=who)


async def allow(services: Services, call: Call, here: Access, servers: Iterable[str]) -> bool:
    """Puts servers that the caller may use into the account's directory; False: all were there."""
    async with services.db.transaction() as tx:
        uids = msgspec.json.encode(list(servers)).decode()
        new: str = await tx.fetchval(Q.allow_servers, here.uid, uids, access.caller(call))
        await audit.accepted_all(tx, call, USE_AS_TARGET, new)
    if new == NONE:
        return False
    await send_directory(services, call, here)
    return True


async def send_directory(services: Services, call: Call, here: Access) -> None:
    """At once, so that the same request may name the server. What fails here the runner sends later."""
    account = await resource_by_key(services.db, here.id.key)
    if account is None:
        return

    async def send(command: SyncDirectory) -> DirectorySynced:
        answer: DirectorySynced = await services.agent.run(
            here.uid,
            uuid4(),
            command,
            here.login,
            caller=access.caller(call),
            door=Door.REST,
            size=command.size,
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
) -> dict[str, Candidates]:
    """The servers of the caller's tenant in the account's subscription that have one of these names."""
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    wanted = msgspec.json.encode(sorted(names)).decode()
    servers = await services.db.fetchval(Q.servers_called, home, tenant, wanted, account_uid)
    return await _judged(services, call, servers)


async def _judged(services: Services, call: Call, servers: str) -> dict[str, Candidates]:
    scopes = await authorization.scopes_for(services, call.principal, USE_AS_TARGET)
    return await compute(candidates_of, servers, frozenset(scopes), size=len(servers))


def candidates_of(servers: str, scopes: frozenset[str]) -> dict[str, Candidates]:
    """By name, from a JSON array: there may be thousands of servers."""
    by_name: dict[str, list[NamedServer]] = {}
    for server in msgspec.json.decode(servers, type=list[NamedServer]):
        by_name.setdefault(server.name, []).append(server)
    candidates: dict[str, Candidates] = {}
    for name, named in by_name.items():
        candidates[name] = Candidates([], [])
        for server in [server for server in named if server.own_name] or named:
            if authorization.covered(server.id.lower(), scopes):
                candidates[name].usable.append(server.uid)
            else:
                candidates[name].others.append(server)
    return candidates


async def _usable(
    services: Services, call: Call, candidates: Candidates, scope: ResourceId
) -> list[str]:
    return candidates.usable + [
        server.uid
        for server in candidates.others
        if await usable(services, call, ResourceId.parse(server.id), scope)
    ]


async def _unknown(
    services: Services, call: Call, server: ServerName, account: ResourceId, *, hint: bool
) -> FieldError:
    """The same for a server that is not there and for one that the caller may not read."""
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    other = await services.db.fetchval(Q.server_anywhere, server.name.partition(".")[0], tenant)
    outside = other is not None and ResourceId.parse(other)
    if outside and (outside.subscription or "").lower() != home:
        await usable(services, call, outside, account)
    near = await _near(services, call, server.name, account) if hint else []
    advice = f" Did you mean {', '.join(near)}?" if near else ""
    return FieldError(server.where, _absent(server.name) + advice, CODE)


def _absent(name: str) -> str:
    return f"There is no server '{name[:100]}' in the subscription of the job account."


async def check_readable(
    services: Services, call: Call, account: ResourceId, server: ServerName
) -> None:
    """Refuses a name that no server of the subscription has that the caller may read."""
    names = await _readable_names(services, call, account)
    if server.name.lower() not in {name.lower() for name in names}:
        refuse([await _unknown(services, call, server, account, hint=True)])


async def _readable_names(services: Services, call: Call, account: ResourceId) -> list[str]:
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    scopes = await authorization.scopes_for(services, call.principal, READ)
    return [row["name"] for row in await services.db.fetch(Q.server_names, home, tenant, scopes)]


async def _near(services: Services, call: Call, name: str, account: ResourceId) -> list[str]:
    """Names of servers that the caller may read; a subscription may have thousands."""
    names = await _readable_names(services, call, account)
    size = len(names) * SEARCH_COST
    return await compute(nearest, name.lower()[:100], names, size=size)


def nearest(name: str, names: list[str]) -> list[str]:
    return difflib.get_close_matches(name, names, n=3, cutoff=0.4)
