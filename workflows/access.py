"""Access to an account's control database: where it is, which login, and what failures mean."""

from typing import Any, NoReturn
from uuid import UUID

import msgspec

from fsm.account_steps import IDENTITY, INSTALLED
from fsm.administrator import endpoint_of, secret_of
from fsm.store import resource_of
from muster.core.errors import (
    Conflict,
    Fault,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
)
from muster.core.ids import ResourceId
from muster.core.sql import Queries
from nodeagent.client import login
from nodeagent.protocol import Door, Roles
from workflows import admission
from workflows.accesscache import Access
from workflows.model.resource import Call
from workflows.services import Services

Q = Queries("workflows.sql", "account.sql")

AGENT = "agent_password"
# Of the way to the control database, not of what was asked there.
OF_THE_WAY = (
    "Target",
    "ConnectNotGranted",
    "ControlDatabase",
    "ControlSchema",
    "Incompatible",
    "Sealed",
    "CommandNot",
)
JUDGEMENTS = (InvalidRequest, NotFound, Forbidden, Conflict, PreconditionFailed)


def account_of(id: ResourceId) -> ResourceId:
    return id.upto("jobAgents")


def path_of(id: ResourceId) -> tuple[str, ...]:
    """The names from the account down."""
    return tuple(name for _, name in id.pairs[len(account_of(id).pairs) :])


async def of(services: Services, call: Call, id: ResourceId, *, refresh: bool = False) -> Access:
    """How the account of `id` is reached; NotFound, or Conflict while there is nothing to reach."""
    account, tenant = account_of(id), call.principal.tenant_id
    cached = None if refresh else services.accounts.get(tenant, account.key)
    if cached is None:
        cached = await _read(services, account, tenant, wanted=id)
        services.accounts.keep(tenant, account.key, cached)
    return cached


async def look(
    services: Services,
    call: Call,
    id: ResourceId,
    command: msgspec.Struct,
    *,
    command_id: UUID | None = None,
) -> Any:
    """Asks something that changes nothing; a login that was remembered for too long is renewed.

    What is journalled all the same, such as a question to the engine, needs an id of its own.
    """
    access = await of(services, call, id)
    try:
        return await _ask(services, call, access, command, command_id)
    except Fault as fault:
        if not _of_the_way(fault):
            raise
    try:
        return await _ask(
            services, call, await of(services, call, id, refresh=True), command, command_id
        )
    except JUDGEMENTS as fault:
        judge(fault)


def judge(fault: Fault) -> NoReturn:
    """A control database that does not answer is a state of the account, independent of its error."""
    if _of_the_way(fault):
        raise Conflict(fault.message, code=fault.code, context=fault.context) from fault
    raise fault


def caller(call: Call) -> str:
    return call.principal.name or call.principal.id


async def _ask(
    services: Services, call: Call, access: Access, command: msgspec.Struct, command_id: UUID | None
) -> Any:
    # Where nothing is journalled any id will do.
    command_id = command_id or access.uid
    return await services.agent.run(
        access.uid, command_id, command, access.login, caller=caller(call), door=Door.REST
    )


def _of_the_way(fault: Fault) -> bool:
    return isinstance(fault, JUDGEMENTS) and fault.code.startswith(OF_THE_WAY)


async def _read(
    services: Services, account: ResourceId, tenant: str, *, wanted: ResourceId
) -> Access:
    rows = {
        row["role"]: row for row in await services.db.fetch(Q.reach_account, account.key, tenant)
    }
    if "account" not in rows:
        async with services.db.connection() as connection:
            await admission.parents(connection, first_below(wanted), tenant)
    row = rows["account"]
    scratch = row["scratch"] or {}
    if INSTALLED not in scratch or row["provisioning_state"] == "Deleting":
        raise _not_ready(account, row["provisioning_state"])
    if len(rows) < 3:
        raise Conflict("The control database is gone.", code="ControlDatabaseNotFound")
    resource, server = resource_of(row), resource_of(rows["server"])
    password = secret_of(services, resource, AGENT)
    assert password is not None
    return Access(
        uid=resource.uid,
        id=ResourceId.parse(resource.id),
        identity=UUID(scratch[IDENTITY]),
        public_key=scratch["publicKey"],
        login=login(
            services.keyring,
            resource.uid,
            server=server.key,
            endpoint=endpoint_of(services, server).direct(),
            database=rows["database"]["name"],
            user=Roles.of(resource.uid).agent,
            password=password,
        ),
    )


def first_below(id: ResourceId) -> ResourceId:
    """The outermost resource inside the account: what stands above it is in the metadata database."""
    above = len(account_of(id).pairs)
    return ResourceId(id.pairs[: above + 1]) if len(id.pairs) > above else id.child(("jobs", "-"))


def _not_ready(account: ResourceId, state: str) -> Conflict:
    if state == "Deleting":
        return Conflict(f"The job account '{account.name}' is being deleted.", code=NOT_READY)
    why = "its creation failed" if state == "Failed" else "it is still being created"
    return Conflict(
        f"The job account '{account.name}' has no control database yet: {why}.",
        code=NOT_READY,
    )


NOT_READY = "JobAgentNotReady"
