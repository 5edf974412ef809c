"""A lifecycle is a table: one row per state, every edge in it, checked when it is imported.

From the rows a python-statemachine `StateMachine` is built; it alone says whether a move is legal
and where it leads, and it draws the diagram.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from statemachine import State, StateMachine
from statemachine.contrib.diagram import formatter
from statemachine.exceptions import TransitionNotAllowed
from statemachine.factory import StateMachineMetaclass

from muster.core.errors import Internal

if TYPE_CHECKING:
    from fsm.context import Context

# The events that are no signals of customers.
DONE = "done"
GIVE_UP = "give_up"
AGAIN = "again"
BACK = "back"

DELETING = "Deleting"


@dataclass(frozen=True)
class Done:
    """The work of the state is finished. What it found is merged into the resource and the scratch."""

    observed: Mapping[str, Any] = field(default_factory=dict)
    scratch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """Not finished, and nothing is wrong: look again later. What is known by now is kept."""

    delay: timedelta
    why: str
    scratch: Mapping[str, Any] = field(default_factory=dict)
    restarts_deadline: bool = False  # the time of the state is counted from now on


Outcome = Done | Wait
Work = Callable[["Context"], Awaitable[Outcome]]


@dataclass(frozen=True)
class Step:
    """Works until it is done, fails for good, or runs out of time."""

    state: StrEnum
    shows: str  # the resource's own word: Creating, Ready, …
    provisioning: str  # ARM's provisioningState
    work: Work
    then: StrEnum
    within: timedelta
    otherwise: StrEnum
    restores: bool = False  # giving up, or an interruption, brings the old settings back
    back: StrEnum | None = None  # giving up leads here if the work was asked for here


@dataclass(frozen=True)
class Rest:
    """Sleeps until a signal, or until it tries `again` by itself with back-off."""

    state: StrEnum
    shows: str
    provisioning: str
    signals: Mapping[str, StrEnum]
    again: StrEnum | None = None
    tells: bool = False  # the error that led here is shown as a condition, too
    unless: str | None = (
        None  # a type of condition that is shown in place of `shows` while it holds
    )

    def shown(self, conditions: Sequence[Mapping[str, Any]]) -> str:
        holds = any(each["type"] == self.unless for each in conditions)
        return self.unless if self.unless and holds else self.shows


@dataclass(frozen=True)
class End:
    """The end: the resource's row is deleted in the same transaction."""

    state: StrEnum


Row = Step | Rest | End


class Lifecycle:
    def __init__(
        self,
        name: str,
        rows: Sequence[Row],
        *,
        shown_as: str | None,
        interrupts: Mapping[str, StrEnum] | None = None,
    ) -> None:
        self.name = name
        self.rows = {row.state: row for row in rows}
        self.initial = rows[0].state
        self.shown_as = shown_as  # name of the read-only property that holds `shows`
        self.interrupts = dict(interrupts or {})
        self._check(rows)
        self.machine = self._build()

    def row(self, state: str) -> Row:
        try:
            return self.rows[state]  # type: ignore[index]  # a StrEnum equals its text
        except KeyError:
            raise Internal(f"lifecycle {self.name} has no state {state}") from None

    def move(self, state: str, event: str) -> str:
        """The state that `event` leads to; refuses a move that the table does not know."""
        machine: Any = self.machine(start_value=state)
        try:
            machine.send(event)
        except TransitionNotAllowed as error:
            raise Internal(f"{self.name}: no edge '{event}' from state {state}") from error
        return str(machine.current_state_value)

    def interrupted_by(self, state: str) -> frozenset[str]:
        """The signals that end what runs in this state; deletion itself is shielded."""
        return frozenset() if shielded(self.row(state)) else frozenset(self.interrupts)

    def edges(self) -> list[tuple[str, str, str]]:
        """(from, event, to): every legal move, in the order of the table."""
        rows: list[tuple[str, str, str]] = []
        for row in self.rows.values():
            match row:
                case Step():
                    rows += [(row.state, DONE, row.then), (row.state, GIVE_UP, row.otherwise)]
                    rows += [(row.state, BACK, row.back)] if row.back else []
                case Rest():
                    rows += [(row.state, signal, to) for signal, to in row.signals.items()]
                    rows += [(row.state, AGAIN, row.again)] if row.again else []
            events = {event for state, event, _ in rows if state == row.state}
            rows += [
                (row.state, signal, to)
                for signal, to in self.interrupts.items()
                if not shielded(row) and signal not in events
            ]
        return rows

    def mermaid(self) -> str:
        return formatter.render(self.machine, "mermaid").strip()

    def _check(self, rows: Sequence[Row]) -> None:
        enum = type(rows[0].state)
        wrong = [f"state {s} has two rows" for s in enum if [r.state for r in rows].count(s) > 1]
        wrong += [f"state {s} has no row" for s in enum if s not in self.rows]
        wrong += [f"{to} is no state" for _, _, to in self.edges() if to not in self.rows]
        if not any(isinstance(row, End) for row in rows):
            wrong.append("nothing ends it")
        if isinstance(rows[0], End):
            wrong.append("it begins with its end")
        wrong += [
            f"{row.state}: '{signal}' is the name of an internal event"
            for row in rows
            if isinstance(row, Rest)
            for signal in row.signals
            if signal in {DONE, GIVE_UP, AGAIN, BACK}
        ]
        if wrong:
            raise ValueError(f"lifecycle {self.name}: {'; '.join(wrong)}")

    def _build(self) -> type[StateMachine]:
        """The library refuses states that can't be reached and states that nothing leaves."""
        states = {
            str(state): State(
                str(state),
                value=str(state),
                initial=state == self.initial,
                final=isinstance(row, End),
            )
            for state, row in self.rows.items()
        }
        events: dict[str, Any] = {}
        for source, event, target in self.edges():
            edge = states[source].to(states[target])
            events[event] = events[event] | edge if event in events else edge
        return StateMachineMetaclass(  # type: ignore[return-value]  # makes what the base is
            f"{self.name.title()}Machine", (StateMachine,), {**states, **events}
        )


def shielded(row: Row) -> bool:
    return isinstance(row, End) or DELETING in (row.shows, row.provisioning)
