"""Named places where a test may end, break or delay a process; nothing at all in production.

A file (setting `failpoints`) arms them: `{"fsm.effect": "raise", "fsm.before_commit_2@server.making":
"kill times:1"}`. Behind the @ stands which passage is meant; without it, every one. Actions: off,
kill (SIGKILL of ourselves), stop (SIGSTOP: somebody else lets us go on), raise (an error as any
other), crash (like kill, for tests inside one process), sleep:<seconds>; `times:<n>` limits to the
first n hits over all processes. Every hit is counted in a folder beside the file, so that coverage =
hit / declared can be printed.
"""

import asyncio
import contextlib
import inspect
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

DECLARED = frozenset(
    {
        "api.before_commit",
        "api.after_commit",
        "command.begun",
        "command.done",
        "command.settled",
        "core.before_plan",
        "core.planned",
        "core.before_reserve",
        "core.reserved",
        "core.heard",
        "core.before_cancel",
        "core.canceled",
        "core.before_step_end",
        "core.step_ended",
        "core.before_run_end",
        "fsm.before_commit_1",
        "fsm.after_commit_1",
        "fsm.effect",
        "fsm.after_effect",
        "fsm.before_commit_2",
        "fsm.after_commit_2",
        "host.taken",
        "host.before_start",
        "host.started",
        "host.intended",
        "host.finished",
        "host.before_record",
        "host.recorded",
        "launch.claimed",
        "launch.armed",
        "launch.started",
        "launch.stopped",
    }
)

Action = str | Callable[[], Awaitable[None] | None]


class Crash(BaseException):
    """Stands for the end of the process: no `except Exception` sees it, nothing is cleaned up."""


class FailpointError(Exception):
    """What an armed `raise` raises."""


class Armed:
    """Where the actions come from and where the hits go."""

    def __init__(
        self, file: Path | None = None, actions: Mapping[str, Action] | None = None
    ) -> None:
        self.file = file
        self.actions = dict(actions or {})
        self.hits: dict[str, int] = {}

    def action(self, name: str, detail: str) -> Action | None:
        if name not in DECLARED:
            raise LookupError(f"failpoint {name} is not declared")
        point = f"{name}@{detail}" if detail else name
        actions = self._read()
        found = point if point in actions else name
        count = self._count(point)
        action = actions.get(found)
        if isinstance(action, str) and " times:" in action:
            action, _, limit = action.partition(" times:")
            return action if count <= int(limit) else None
        return action

    def _read(self) -> Mapping[str, Action]:
        if self.file is None:
            return self.actions
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}

    def _count(self, point: str) -> int:
        if self.file is None:
            self.hits[point] = self.hits.get(point, 0) + 1
            return self.hits[point]
        folder = self.file.with_suffix(".hits")
        folder.mkdir(exist_ok=True)
        with (folder / quote(point, safe="@")).open("ab") as counter:  # a resource type has a slash
            counter.write(b".")
            counter.flush()
            return counter.tell()


_armed: Armed | None = None


def fp(name: str, detail: str = "") -> None:
    """A place without an event loop at hand: `sleep` stops the whole process, as SIGSTOP would."""
    if _armed is not None:
        _act(_armed.action(name, detail))


async def reach(name: str, detail: str = "") -> None:
    """A place in a coroutine: `sleep` lets the others run, and a function may stand for an action."""
    if _armed is None:
        return
    action = _armed.action(name, detail)
    if isinstance(action, str) and action.startswith("sleep:"):
        await asyncio.sleep(float(action[6:]))
    elif callable(action):
        result = action()
        if inspect.isawaitable(result):
            await result
    else:
        _act(action)


def setup(file: str | None) -> None:
    """Called once by a composition root with the setting."""
    global _armed  # noqa: PLW0603 - one switch per process, read at every place
    _armed = Armed(Path(file)) if file else None


@contextlib.contextmanager
def armed(actions: Mapping[str, Action]) -> Iterator[Armed]:
    """For tests inside one process."""
    global _armed  # noqa: PLW0603
    before, _armed = _armed, Armed(actions=actions)
    try:
        yield _armed
    finally:
        _armed = before


def hits(file: Path) -> dict[str, int]:
    """How often each place was passed, over all processes that were armed by this file."""
    return {unquote(f.name): f.stat().st_size for f in sorted(file.with_suffix(".hits").glob("*"))}


def _act(action: Action | None) -> None:
    match action:
        case None | "off":
            return
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "crash":
            raise Crash
        case "raise":
            raise FailpointError("a failpoint broke this step")
        case str() if action.startswith("sleep:"):
            time.sleep(float(action[6:]))
        case _:
            raise LookupError(f"no such failpoint action: {action!r}")
