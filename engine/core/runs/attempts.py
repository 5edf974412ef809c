"""Carries out which attempt of a run follows which: in the database first, then in memory.

A pass has ended when all targets of the live steps have ended: of one step, or of all steps of a chain. Then the steps
stay live and the run waits for its next attempt, or the steps end as those of any run.
"""

from collections.abc import Callable

from engine.core.runs.execution_store import ExecutionStore, Q
from engine.scheduling.run_attempts import Counters, Decision, Next, Pass, decide
from engine.scheduling.runs import Run
from muster.core import telemetry
from muster.core.failpoints import reach

log = telemetry.get(__name__)

TIMEOUT = 60.0  # seconds to count the targets of a run, or to take them back; it may have a million


class RunAttempts:
    def __init__(self, executions: ExecutionStore, now: Callable[[], float]) -> None:
        self._executions = executions
        self._now = now  # by the database's clock

    def pass_has_ended(self, run: Run) -> bool:
        """A decision is due. A run that is cancelled or was aborted gets no further attempt."""
        return (
            run.attempt_rules is not None
            and not run.pass_ended
            and not run.outdated
            and not run.is_stopping
            and run.next_of_chain() is None
            and all(step.finished for step in run.live)
        )

    def is_due(self, run: Run) -> bool:
        return (
            run.next_attempt is not None
            and run.next_attempt <= self._now()
            and not run.outdated
            and not run.is_stopping
            and all(step.is_queued for step in run.live)
        )

    async def end_pass(self, run: Run) -> None:
        await reach("core.before_attempt_end")
        decision, ended = await self._decide(run)
        if decision.next is Next.WAIT:
            assert decision.due is not None
            ((reply,),) = await self._executions.rows(
                Q.wait_for_attempt, run.id, ended.newly_succeeded, ended.remaining, decision.due,
                decision.message, limit=TIMEOUT,
            )  # fmt: skip
            if reply == "waits":
                run.next_attempt = decision.due
                log.info("run waits for its next attempt", run=run.id, why=decision.message)
            elif reply == "unfinished":  # a target was retried
                run.outdated = True
        else:
            await self._executions.rows(
                Q.end_attempts, run.id, ended.newly_succeeded, ended.remaining, decision.limit,
                decision.message,
            )  # fmt: skip
        run.pass_ended = run.next_attempt is None and not run.outdated
        await reach("core.attempt_ended")

    async def _decide(self, run: Run) -> tuple[Decision, Pass]:
        assert run.attempt_rules is not None
        (row,) = await self._executions.rows(Q.attempt_outcome, run.id, limit=TIMEOUT)
        ended = Pass(row["newly_succeeded"], row["remaining"])
        return decide(run.attempt_rules, Counters.of(row["earlier"]), ended, self._now()), ended

    async def begin(self, run: Run) -> None:
        """The run is loaded again, with the targets that went back to Created."""
        await reach("core.before_attempt")
        await self._executions.rows(Q.begin_attempt, run.id, limit=TIMEOUT)
        run.outdated = True
        await reach("core.attempt_begun")
