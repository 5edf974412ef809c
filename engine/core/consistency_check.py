"""Compares memory with the database: what stays different although it could be learned is a mistake."""

from datetime import timedelta
from uuid import UUID

from engine.context.core_context import CoreContext
from engine.core.runs.execution_store import Q
from engine.core.service import Service
from engine.db import membership
from engine.process.exit_codes import Disagreement


class ConsistencyCheck(Service):
    """A change that is only on its way has been learned by the next look; the pause is long enough."""

    name = "agreement"

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._suspected: frozenset[str] = frozenset()

    @property
    def pause(self) -> timedelta:
        return 3 * self.context.heartbeat

    async def run_once(self) -> None:
        found = self.context.cluster_state.differs(await membership.look(self.context.store))
        found |= await self._tasks()
        if wrong := found & self._suspected:
            raise Disagreement("; ".join(sorted(wrong)))
        self._suspected = found
        self.status = f"suspects {len(found)} things" if found else "agrees"

    async def _tasks(self) -> frozenset[str]:
        """Of the tasks that live, each that only one side knows of."""
        store, before = self.context.store, self._running()
        async with store.calling() as tx:
            rows = await tx.fetch(Q.live_invocations, store.epoch)
        known, after = {row[0] for row in rows}, self._running()
        if before is None or after is None:
            return frozenset()
        # Whatever came or went while we looked is no mistake.
        missing, surplus = known - before - after, (before & after) - known
        return frozenset(
            [f"task {id} lives and is not known" for id in missing]
            + [f"task {id} is known and does not live" for id in surplus]
        )

    def _running(self) -> set[UUID] | None:
        run_state = self.context.cluster_state.run_state
        return None if run_state is None else set(run_state.running)
