"""The registry of node agents: which are alive and which servers they serve; rows in the metadata database."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass

from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.errors import Unavailable
from muster.core.settings import Settings
from muster.core.sql import Queries
from muster.core.version import VERSION

log = telemetry.get(__name__)
Q = Queries("nodeagent.sql", "registry.sql")


async def routes(db: Database, server_key: str, settings: Settings) -> list[str]:
    """Addresses of live agents, the best first; none is Unavailable."""
    rows = await db.fetch(Q.routes, server_key.lower(), settings.node_agent_silent)
    if not rows:
        raise Unavailable(
            "No node agent is alive for the server; commands wait until one is.",
            code="NodeAgentUnavailable",
            target=server_key,
            retry_after=5,
        )
    return [row["url"] for row in rows]


@dataclass(frozen=True)
class Registration:
    db: Database
    settings: Settings
    url: str
    clock: Clock

    @property
    def name(self) -> str:
        return self.settings.node_agent_name or socket.gethostname()

    async def beat(self) -> None:
        servers = [server.lower() for server in self.settings.node_agent_servers] or None
        await self.db.execute(Q.beat, self.name, self.url, servers, VERSION)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; an outage of the metadata database is waited out."""
        while not stop.is_set():
            try:
                await self.beat()
            except Unavailable as fault:
                log.warning("heartbeat was not written", why=fault.context)
            await self.clock.sleep_or(stop, self.settings.node_agent_heartbeat)
        with contextlib.suppress(Unavailable):
            await self.db.execute(Q.leave, self.name, self.url)
