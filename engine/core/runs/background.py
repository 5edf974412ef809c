"""Background tasks of steps: resolving targets and writing large plans, beside the controller's loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from engine.scheduling.runs import StepRun


class BackgroundTasks:
    """At most one task for each step."""

    def __init__(self, on_end: Callable[[StepRun, BaseException | None], None]) -> None:
        self._on_end = on_end  # called with the step and the exception of its task
        self._tasks: dict[StepRun, asyncio.Task[None]] = {}

    def __contains__(self, step: StepRun | None) -> bool:
        return step in self._tasks

    def start(self, step: StepRun, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[step] = asyncio.create_task(work)
        task.add_done_callback(lambda task: self._end(step, task))

    def cancel(self, step: StepRun) -> None:
        if step in self._tasks:
            self._tasks[step].cancel()

    def cancel_all(self) -> None:
        """Cancels every task without calling `on_end`."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()

    def _end(self, step: StepRun, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._tasks.pop(step, None) is not None:
            self._on_end(step, error)
