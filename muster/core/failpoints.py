"""Named places where a test may end, break or delay a process; nothing at all in production.

A file (setting `failpoints`) arms them: `{"fsm.effect": "raise", "fsm.before_commit_2@server.making":
"kill times:1"}`. The number after the @ is the passage that is meant; without it, every one. Actions: off,
kill (SIGKILL of ourselves), stop (SIGSTOP: another process continues us), raise (an error as any
other), crash (like kill, for tests inside one process), sleep:<seconds>; `times:<n>` limits to the
first n hits over all processes. Every hit is counted in a folder beside the file, so that coverage =
hit / declared can be printed. `arm` writes the file again and counts from zero: a process that still acts by
the former one goes on counting there.
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
from uuid import uuid4

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
        "core.before_halt",
        "core.halted",
        "core.before_attempt_end",
        "core.attempt_ended",
        "core.before_attempt",
        "core.attempt_begun",
        "core.before_wave",
        "core.wave_opened",
        "core.before_abort",
        "core.aborted",
        "core.before_retry",
        "core.retried",
        "core.before_join",
        "core.joined",
        "core.targets_chosen",
        "core.before_chain_step",
        "core.before_skip",
        "core.skipped",
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
        "host.before_verify",
        "host.verified",
        "host.spooled",
        "host.before_output",
        "host.output_copied",
        "host.output_committed",
        "host.finished",
        "host.before_record",
        "host.recorded",
        "launch.claimed",
        "launch.armed",
        "launch.started",
        "launch.stopped",
    }
)

ARMING = "arming"  # in the file, beside the places: under which name their hits are counted

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
        key = point if point in actions else name
        count = self._count(point, actions)
        action = actions.get(key)
        if isinstance(action, str) and " times:" in action:
            action, _, limit = action.partition(" times:")
            return action if count <= int(limit) else None
        return action

    def _read(self) -> Mapping[str, Action]:
        return self.actions if self.file is None else _actions(self.file)

    def _count(self, point: str, actions: Mapping[str, Action]) -> int:
        if self.file is None:
            self.hits[point] = self.hits.get(point, 0) + 1
            return self.hits[point]
        folder = _folder(self.file, actions)
        folder.mkdir(parents=True, exist_ok=True)
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


def arm(file: Path, actions: Mapping[str, str]) -> None:
    """For processes that were set up with this file."""
    draft = file.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode({**actions, ARMING: uuid4().hex}))
    draft.rename(file)


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
    counters = sorted(_folder(file, _actions(file)).glob("*"))
    return {unquote(each.name): each.stat().st_size for each in counters if each.is_file()}


def _actions(file: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}


def _folder(file: Path, actions: Mapping[str, Action]) -> Path:
    """Of the hits that count for these actions."""
    return file.with_suffix(".hits") / str(actions.get(ARMING, ""))


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
