"""What the targets of a step with `advance: perTarget` wait for in the step before it.

A target that took part in the step before starts when it has succeeded there, and is skipped when it has not. A target
that did not take part waits until that step has ended everywhere. The state follows from the rows of both steps, so a
core that starts again computes the same.

    previous = PreviousTargets.of(rows, continues=False)   # rows of previous_targets
    previous.target_ended(7, "Succeeded")               # the ordinal that may start now, or None
    previous.step_ended("Succeeded")                    # the ordinals that may start now
    previous.skipped                                    # the ordinals that have to be ended as Skipped
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

SUCCESSES = frozenset({"Succeeded", "SucceededWithSkipped", "Skipped"})  # of steps


@dataclass(slots=True)
class PreviousTargets:
    continues: bool = False  # its onFailure is continue
    held: set[int] = field(default_factory=set)  # ordinals that must not start
    followers: dict[int, int] = field(default_factory=dict)  # by the ordinal in the previous step
    skipped: set[int] = field(default_factory=set)  # held ordinals that have to end as Skipped

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        continues: bool,
        ended: str | None = None,
        rerun: bool = False,
    ) -> Self:
        """`ended`: the lifecycle of the previous step, if it has ended. In a rerun, a target that does not take part
        in the previous step has done that step in the origin.
        """
        previous = cls(continues)
        for row in rows:
            ordinal, lifecycle = row["ordinal"], row["previous_lifecycle"]
            if row["previous_ordinal"] is not None:
                previous.held.add(ordinal)
                previous.followers[row["previous_ordinal"]] = ordinal
                if lifecycle is not None:
                    previous.target_ended(row["previous_ordinal"], lifecycle)
            elif not rerun:
                previous.held.add(ordinal)
        if ended is not None:
            previous.step_ended(ended)
        return previous

    @property
    def waiting(self) -> int:
        """So many targets wait for the previous step."""
        return len(self.held) - len(self.skipped)

    def may_start(self, ordinal: int) -> bool:
        return ordinal not in self.held

    def target_ended(self, previous_ordinal: int, lifecycle: str) -> int | None:
        """Returns the ordinal that may start now."""
        ordinal = self.followers.pop(previous_ordinal, None)
        if ordinal is None or ordinal not in self.held:
            return None
        if lifecycle == "Succeeded" or (self.continues and lifecycle != "Skipped"):
            self.held.remove(ordinal)
            return ordinal
        self.skipped.add(ordinal)
        return None

    def step_ended(self, lifecycle: str) -> list[int]:
        """Returns the ordinals that may start now: of targets that did not take part in the previous step."""
        waiting = self.held - self.skipped
        if not self.continues and lifecycle not in SUCCESSES:
            self.skipped |= waiting
            return []
        self.held -= waiting
        return sorted(waiting)

    def remove(self, ordinal: int) -> None:
        """The target has ended without a start."""
        self.held.discard(ordinal)
        self.skipped.discard(ordinal)
