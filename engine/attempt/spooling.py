"""Keeps the rows of a script's first result set for the output of its step."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.core.failpoints import reach

if TYPE_CHECKING:
    from engine.attempt.outcome import Outcome
    from engine.attempt.script_run import ScriptRun

REASON = "OutputFailed"


@contextlib.contextmanager
def attached(run: "ScriptRun", *, own_last: bool) -> Iterator[None]:
    """While a statement of the script runs; `own_last`: the last result is that of a query of ours."""
    if run.spool is None:
        yield
        return
    run.spool.attach(run.session.result_reader)
    try:
        yield
        if own_last and run.session.result_reader.sets:
            run.spool.discard_result(run.session.result_reader.sets[-1])
    finally:
        run.spool.detach()


async def complete(run: "ScriptRun") -> "Outcome | None":
    """A phase after the script and before its commit; None: there is no output, or its rows are complete."""
    if run.spool is None:
        return None
    run.spool.complete()
    await reach("host.spooled")
    return await failed(run)


async def failed(run: "ScriptRun") -> "Outcome | None":
    """The outcome when rows could not be kept; nothing was committed unless each statement commits by itself."""
    failure = run.spool.failure if run.spool is not None else None
    if failure is None:
        return None
    retry = failure.retry and (run.transactional or run.step.options.idempotent)
    return await run.rejected_by_us(failure.message, reason=REASON, retry=retry)
