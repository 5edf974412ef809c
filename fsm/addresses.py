"""The addresses that the control plane decides on: embedded servers, and its own, which nobody may reach.

Nothing in a control database has a part in it.
"""

from dataclasses import dataclass
from uuid import UUID

from muster.core.db import Connection, Database, Row
from muster.core.egress import Addresses, Pair, own_addresses, servers_of
from muster.core.settings import Settings
from muster.core.sql import Queries

Q = Queries("fsm.sql", "addresses.sql")


@dataclass(frozen=True)
class KnownAddresses:
    """For the control plane's own connections, which go to the servers of all accounts."""

    db: Database

    async def current(self) -> Addresses:
        rows = await self.db.fetch(Q.embedded_endpoints)
        return Addresses(embedded=_pairs(rows), own=await _node_agents(self.db))

    newest = current


async def of_account(
    db: Connection | Database, settings: Settings, account_uid: UUID | None
) -> Addresses:
    """For the engine and the hosts of an account: of the embedded servers only its subscription's."""
    rows = await db.fetch(Q.embedded_endpoints_of_account, account_uid)
    own = own_addresses(settings) | await _node_agents(db)
    return Addresses(embedded=_pairs(rows), own=own)


async def _node_agents(db: Connection | Database) -> frozenset[Pair]:
    """Their ports may be any: they say them when they begin to listen."""
    rows = await db.fetch(Q.node_agent_urls)
    return frozenset(pair for row in rows for pair in servers_of(row["url"]))


def _pairs(rows: list[Row]) -> frozenset[Pair]:
    return frozenset((row["host"], row["port"]) for row in rows)
