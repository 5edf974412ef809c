"""Slots of servers, pools and databases, as the directory and first contacts tell."""

from collections.abc import Iterable
from typing import Any

from engine.budget import working
from engine.floor import Floor
from engine.resources import UNKNOWN, Node


def see_limits(floor: Floor, rows: Iterable[Any]) -> None:
    for row in rows:
        id, server = row["server_id"], floor.tree.server(row["server_id"])
        server.reason = "ServerDisabled" if row["disabled"] else "ServerConnections"
        _limit(floor, server, 0 if row["disabled"] else _sessions(row))
        for pool in row["pools"]:
            _limit(floor, floor.tree.pool(id, pool["name"]), pool.get("max_connections"))
        if server.per_database != row["slots_per_database"]:
            server.per_database = row["slots_per_database"]
            for node in server.databases.values():
                _limit(floor, node, server.per_database)


def _sessions(row: Any) -> int:
    budget = row["max_connections"] or row["budget"]
    return working(budget) if budget else UNKNOWN


def _limit(floor: Floor, node: Node, slots: int | None) -> None:
    if node.slots != slots:
        floor.policy.wake(floor.tree.limit(node, slots))
