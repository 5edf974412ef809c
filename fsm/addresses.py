"""The addresses that the control plane decides on: embedded servers, and its own, which are denied.

Nothing in a control database has a part in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import msgspec

from muster.core.db import Connection, Database, Row
from muster.core.egress import Addresses, Pair, Weak, own_addresses, servers_of
from muster.core.endpoint import Endpoint
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
    """For the engine and the hosts of an account: of the embedded servers only those that it may use."""
    rows = await db.fetch(Q.embedded_endpoints_of_account, account_uid)
    own = own_addresses(settings) | await _node_agents(db)
    weak = await db.fetch(Q.weak_endpoints_of_account, account_uid)
    endpoints = [msgspec.convert(row["endpoint"], Endpoint) for row in weak]
    return Addresses(
        embedded=_pairs(rows),
        own=own,
        weak=frozenset(entry for endpoint in endpoints for entry in _weak(endpoint)),
    )


def _weak(endpoint: Endpoint) -> Iterator[Weak]:
    for each in (endpoint, endpoint.direct()):
        for name in each.names:
            yield name, each.port, each.ssl_mode, each.authentication


async def _node_agents(db: Connection | Database) -> frozenset[Pair]:
    """Their ports may be any: they say them when they begin to listen."""
    rows = await db.fetch(Q.node_agent_urls)
    return frozenset(pair for row in rows for pair in servers_of(row["url"]))


def _pairs(rows: list[Row]) -> frozenset[Pair]:
    return frozenset((row["host"], row["port"]) for row in rows)
