"""Compares memory with the database: a difference that lasts for two checks is an error."""

from datetime import timedelta
from uuid import UUID

from engine.context.core_context import CoreContext
from engine.core.runs.execution_store import Q
from engine.core.service import Service
from engine.db import membership
from engine.process.exit_codes import Disagreement


class ConsistencyCheck(Service):
    """The pause is long enough for a change in the database to arrive in memory before the next check."""

    name = "agreement"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._last_differences: frozenset[str] = frozenset()

    @property
    def pause(self) -> timedelta:
        return 3 * self.context.heartbeat

    async def run_once(self) -> None:
        snapshot = await membership.look(self.context.store)
        differences = self.context.cluster_state.differences(snapshot) | await self._tasks()
        if lasting := differences & self._last_differences:
            raise Disagreement("; ".join(sorted(lasting)))
        self._last_differences = differences
        self.status = f"{len(differences)} differences" if differences else "agrees"

    async def _tasks(self) -> frozenset[str]:
        """Live tasks that only memory or only the database has."""
        store, before = self.context.store, self._running()
        async with store.calling() as tx:
            rows = await tx.fetch(Q.live_invocations, store.epoch)
        live, after = {row[0] for row in rows}, self._running()
        if before is None or after is None:
            return frozenset()
        # Tasks that started or ended during the query are no differences.
        missing, surplus = live - before - after, (before & after) - live
        return frozenset(
            [f"task {id} lives and is missing here" for id in missing]
            + [f"task {id} does not live any more" for id in surplus]
        )

    def _running(self) -> set[UUID] | None:
        run_state = self.context.cluster_state.run_state
        return None if run_state is None else set(run_state.running)
