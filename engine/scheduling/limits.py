"""Slots of servers, pools and databases, as the directory and first contacts tell."""

from collections.abc import Iterable
from typing import Any

from engine.scheduling.resource_tree import UNKNOWN_SESSIONS, Node, PoolNode, ServerNode
from engine.scheduling.run_state import RunState
from muster.core.session_budget import working


def see_limits(floor: RunState, rows: Iterable[Any]) -> None:
    for row in rows:
        id, server = row["server_id"], floor.tree.server(row["server_id"])
        server.reason = "ServerDisabled" if row["disabled"] else "ServerConnections"
        _limit(floor, server, 0 if row["disabled"] else _sessions(row))
        each: list[tuple[ServerNode | PoolNode, int | None]] = [(server, row["slots_per_database"])]
        for said in row["pools"]:
            pool = floor.tree.pool(id, said["name"])
            _limit(floor, pool, said.get("max_connections"))
            each.append((pool, said.get("slots_per_database")))
        if any(node.per_database != slots for node, slots in each):
            for node, slots in each:
                node.per_database = slots
            for database in server.databases.values():
                _limit(floor, database, server.slots_of(database))


def _sessions(row: Any) -> int:
    budget = row["max_connections"] or row["budget"]
    return working(budget) if budget else UNKNOWN_SESSIONS


def _limit(floor: RunState, node: Node, slots: int | None) -> None:
    if node.slots != slots:
        floor.policy.wake(floor.tree.limit(node, slots))
