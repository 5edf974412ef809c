"""Lists servers again that could not be listed when their step began; their targets join the running step.

Such a server is a target of the step, which hosts try like any other. Before each further attempt, the core lists it:
if that succeeds, the targets take its place in one transaction, otherwise a host tries it again. So the retries and
the timeout of the step limit both. A core that starts again finds the server among the waiting targets.
"""

from collections.abc import Callable

from engine.core.runs.background import BackgroundTasks
from engine.core.runs.execution_store import ExecutionStore, Q
from engine.core.runs.planner import Planner, snapshot_columns
from engine.model.group_document import Document
from engine.process.exit_codes import FINAL
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run, StepRun, WaitingTarget
from engine.targets.resolution import Resolution, Target
from muster.core import telemetry
from muster.core.errors import Fault, Unavailable
from muster.core.failpoints import reach

log = telemetry.get(__name__)

JOIN_TIMEOUT = 120.0  # seconds to write the targets of a server; it may have many thousands


class LateListing:
    def __init__(
        self,
        planner: Planner,
        executions: ExecutionStore,
        run_state: RunState,
        wake: Callable[[Run], None],
    ) -> None:
        self._planner = planner
        self._executions = executions
        self._run_state = run_state
        self._wake = wake
        self._tasks = BackgroundTasks(self._ended)
        self._targets: dict[StepRun, list[WaitingTarget]] = {}  # that are being listed
        self._failure: Fault | None = None  # the database may have applied a statement

    def start(self) -> None:
        """Lists what is due. Raises the fault of an earlier statement: memory must be loaded again."""
        if self._failure is not None:
            raise self._failure
        unlisted = self._run_state.unlisted
        for step in [step for step in unlisted if step not in self._tasks]:
            due = unlisted.pop(step)
            targets = [each for each in due if step.waiting.get(each.ordinal) is each]
            if targets:
                self._targets[step] = targets
                self._tasks.start(step, self._list(step, targets))

    def __contains__(self, step: StepRun) -> bool:
        return step in self._tasks

    def end(self) -> None:
        self._tasks.cancel_all()

    async def _list(self, step: StepRun, targets: list[WaitingTarget]) -> None:
        places = {target.unlisted for target in targets if target.unlisted}
        servers = frozenset(server for server, _ in places)
        try:
            listing = await self._planner.list_again(step.run, step.plan, servers)
        except FINAL:
            raise
        except Fault as fault:
            log.info("servers are still not listed", run=step.run.id, why=fault.message)
            return
        if listing is None:
            return
        for target in targets:
            listed = listed_targets(*listing, target.unlisted or ("", ""))
            if listed is not None and step.waiting.get(target.ordinal) is target:
                await self._join(step, target, listed)

    async def _join(self, step: StepRun, target: WaitingTarget, listed: list[Target]) -> None:
        assert step.rollout is not None
        key = step.run.id, step.plan.step_id, target.ordinal
        columns = (*snapshot_columns(listed), step.rollout.rules.wave_starts)
        await reach("core.before_join")
        try:
            rows = await self._executions.rows(Q.join_targets, *key, *columns, limit=JOIN_TIMEOUT)
        except Fault as fault:
            self._failure = fault
            raise
        if rows:
            joined = [dict(row) for row in rows if row["ordinal"] != target.ordinal]
            self._run_state.replace(step, target.ordinal, joined)
            await reach("core.joined")
            log.info("targets joined the step", run=step.run.id, targets=len(joined))

    def _ended(self, step: StepRun, error: BaseException | None) -> None:
        """What was not listed is tried by a host."""
        if error is not None:
            log.error("servers could not be listed again", exc_info=error)
        for target in self._targets.pop(step):
            self._run_state.retry(step, target)
        self._wake(step.run)


def listed_targets(
    document: Document, resolution: Resolution, place: tuple[str, str]
) -> list[Target] | None:
    """The targets that a server, or a database of it, stood for; None while it can't be listed."""
    listed: list[Target] = []
    for target in resolution.targets:
        member = document.members.get(target.rule)
        server = document.server_of(member) if member is not None else None
        if server is None or server.server_id.lower() != place[0]:
            continue
        if place[1] in {"", target.database}:
            if target.key == (*place, "") and isinstance(target.error, Unavailable):
                return None
            listed.append(target)
    return listed
