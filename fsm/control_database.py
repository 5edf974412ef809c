"""The control database of an account, as its machine sees it: through the node agent only."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import msgspec

from fsm import directory
from fsm.administrator import PASSWORD, endpoint_of, login_of, secret_of
from fsm.context import Context
from fsm.database_steps import EXISTED
from fsm.directory import Recipient, Sent
from fsm.store import Q, Resource, resource_by_key
from muster.core.endpoint import Endpoint
from muster.core.errors import NotFound, PreconditionFailed, Unavailable
from nodeagent.client import AgentClient, login
from nodeagent.protocol import Login, Roles

NO_ADMINISTRATOR = "ServerHasNoAdministrator"


@dataclass(frozen=True)
class Control:
    """Where it is, and who asks: the server's administrator, or the account's own agent role."""

    ctx: Context
    agent: AgentClient
    server: Resource
    database: Resource
    endpoint: Endpoint

    async def is_ours(self) -> bool:
        """Muster made the database: its machine looked, and it was not on the server before."""
        machine = await self.ctx.services.db.fetchrow(Q.get_machine, self.database.uid)
        return machine is not None and machine["scratch"].get(EXISTED) is False

    async def administer(self, command: msgspec.Struct) -> Any:
        user = login_of(self.server)
        password = secret_of(self.ctx.services, self.server, PASSWORD)
        if user is None or password is None:
            raise PreconditionFailed(
                f"Server '{self.server.name}' has no administratorLogin: the account can't be set up.",
                code=NO_ADMINISTRATOR,
            )
        return await self._run(command, user, password)

    async def operate(self, command: msgspec.Struct) -> Any:
        password = secret_of(self.ctx.services, self.ctx.resource, "agent_password")
        assert password is not None
        return await self._run(command, Roles.of(self.ctx.resource.uid).agent, password)

    async def _run(self, command: msgspec.Struct, user: str, password: Any) -> Any:
        uid = self.ctx.resource.uid
        credentials: Login = login(
            self.ctx.services.keyring,
            uid,
            server=self.server.key,
            endpoint=self.endpoint,
            database=self.database.name,
            user=user,
            password=password,
        )
        content = msgspec.json.encode(command).decode()
        id = uuid5(self.ctx.command_id, f"{type(command).__name__}/{content}")
        return await self.agent.run(uid, id, command, credentials)


async def of(ctx: Context) -> Control:
    """NotFound when the database or its server does not exist; the caller decides what that means."""
    services = ctx.services
    if services.agent is None or services.queue is None:
        raise Unavailable("This runner serves no job accounts.", code="NodeAgentUnavailable")
    database = await resource_by_key(services.db, ctx.resource.properties["databaseId"].lower())
    server = await resource_by_key(services.db, ctx.resource.parent_key or "")
    if database is None or server is None:
        raise NotFound("The control database is gone.", code="ControlDatabaseNotFound")
    endpoint = endpoint_of(services, server).direct()
    return Control(ctx, services.agent, server, database, endpoint)


async def sync_directory(
    where: Control, identity: UUID, *, sent: Sent | None = None
) -> Sent | None:
    """`identity` is that of the control database as it was found: there alone can keys be opened."""
    services, account = where.ctx.services, where.ctx.resource
    recipient = Recipient(account.uid, identity, where.ctx.scratch["publicKey"])
    return await directory.sync(services, account, recipient, where.operate, sent=sent)
