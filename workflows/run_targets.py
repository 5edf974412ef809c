"""The right to use the servers of the targets that a start or a query names itself."""

import contextlib
from collections.abc import Iterator
from typing import Any

from muster.core.errors import InvalidRequest, refuse
from muster.core.ids import ResourceId
from workflows import authorization, target_servers
from workflows.access import account_of
from workflows.accesscache import Access
from workflows.model.account import ACCOUNT
from workflows.model.resource import Call
from workflows.services import Services
from workflows.target_servers import ServerName


async def check(
    services: Services, call: Call, id: ResourceId, here: Access, targets: list[dict[str, Any]]
) -> None:
    """Refuses unless the caller may use each server.

    Those that the account does not have yet are put into its directory if the caller may do that.
    """
    account = account_of(id)
    caller = target_servers.beyond_token_scope(call)
    places: dict[str, str] = {}
    for at, target in enumerate(targets):
        places.setdefault(target["serverName"], f"targets[{at}].serverName")
    servers = [ServerName(where, name) for name, where in places.items()]
    named = await target_servers.check_named(services, caller, account, servers)
    refuse(named.errors)
    right = f"{ACCOUNT}/allowServer/action"
    if await authorization.allows(services, call.principal, right, account):
        await target_servers.allow(services, call, here, named.servers)
    await target_servers.refuse_others(services, caller, account, servers, named.servers)


@contextlib.contextmanager
def unlisted_server_explained() -> Iterator[None]:
    """The control database's advice names servers that the caller may not be allowed to read."""
    try:
        yield
    except InvalidRequest as refused:
        if refused.code != target_servers.CODE:
            raise
        raise InvalidRequest(
            "A server of the targets is not in the directory of the job account. POST …/allowServer on the account "
            "adds it (muster account allow-server).",
            code=target_servers.CODE,
            target="targets",
        ) from refused
