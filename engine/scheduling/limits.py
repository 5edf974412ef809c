"""Applies the limits of servers, pools and databases, from the directory and from first contacts."""

from collections.abc import Iterable
from typing import Any

from engine.scheduling.resource_tree import UNKNOWN_SESSIONS, Node, PoolNode, ServerNode
from engine.scheduling.run_state import RunState
from muster.core.session_budget import working


def apply_limits(run_state: RunState, rows: Iterable[Any]) -> None:
    for row in rows:
        id, server = row["server_id"], run_state.tree.server(row["server_id"])
        server.reason = "ServerDisabled" if row["disabled"] else "ServerConnections"
        _limit(run_state, server, 0 if row["disabled"] else _sessions(row))
        each: list[tuple[ServerNode | PoolNode, int | None]] = [(server, row["slots_per_database"])]
        for limits in row["pools"]:
            pool = run_state.tree.pool(id, limits["name"])
            _limit(run_state, pool, limits.get("max_connections"))
            each.append((pool, limits.get("slots_per_database")))
        if any(node.per_database != slots for node, slots in each):
            for node, slots in each:
                node.per_database = slots
            for database in server.databases.values():
                _limit(run_state, database, server.slots_of(database))


def _sessions(row: Any) -> int:
    return budget_of(row["max_connections"] or row["budget"])


def budget_of(connections: int | None) -> int:
    """How many tasks may run at a server at once that may have so many connections; None: unknown."""
    return working(connections) if connections else UNKNOWN_SESSIONS


def _limit(run_state: RunState, node: Node, slots: int | None) -> None:
    if node.slots != slots:
        run_state.policy.wake(run_state.tree.limit(node, slots))
