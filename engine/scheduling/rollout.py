"""The rollout of a step: which of its targets may start, and when nothing further starts.

    rules = RolloutRules.of(step.options, targets=1000)   # waves [1, "5%", "100%"]: 1, 50 and 1000 targets
    rollout = StepRollout(rules)
    rollout.may_start(ordinal)                            # only targets of the open waves, while it is not halted
    rollout.target_ended(ordinal, "Failed", "42P01", now)
    decide(rollout, waiting=999, same_error_limit=50, now=now)     # Halt, OpenWave, Wait or None

The decision depends on rules and progress only, and progress on the ends of targets since the start or the last
resume: a core that starts again computes the same from the rows.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from engine.model.sqlstates import retryable

FAILURES = frozenset({"Failed", "TimedOut"})
DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
SECONDS = (86_400, 3_600, 60, 1)  # of the groups of DURATION
MOST_TARGETS = 10**7  # more than a step has, and than a wave can count
MOST_SECONDS = 1_000 * 365 * 86_400  # a pause that a time in PostgreSQL can end


@dataclass(frozen=True, slots=True)
class RolloutRules:
    wave_ends: tuple[int, ...]  # the last ordinal of each wave; ordinals begin with 1
    halt_after: int | str | None = None  # failed targets, or their percentage; None: no limit
    pause: float = 0.0  # seconds between two waves
    manual: bool = False  # each wave but the first waits for an operator
    retry_on: tuple[str, ...] = ()
    waves_given: bool = False  # the step has a rollout; otherwise the limit of the account holds
    begins_with_one: bool = (
        False  # the first wave is one target, and others follow if there are more targets
    )

    @classmethod
    def of(cls, options: Mapping[str, Any], targets: int) -> Self:
        retry_on = tuple(options.get("retryOn", ()))
        rollout = options.get("rollout")
        if rollout is None:
            return cls((targets,), retry_on=retry_on)
        ends, of_many = (wave_ends(rollout["waves"], each) for each in (targets, MOST_TARGETS))
        return cls(
            ends,
            halt_after=rollout.get("haltAfterFailures", 1),
            pause=duration_seconds(rollout.get("pauseBetween", "PT0S")),
            manual=rollout.get("gate") == "manual",
            retry_on=retry_on,
            waves_given=True,
            begins_with_one=ends[:1] == (1,) and len(of_many) > 1,
        )

    @property
    def wave_starts(self) -> list[int]:
        """The first ordinals of the waves after the first."""
        return [end + 1 for end in self.wave_ends[:-1]]

    def failure_limit(self, wave: int) -> int | None:
        """A percentage counts the targets of the waves up to this one."""
        if isinstance(self.halt_after, str):
            return max(1, _share(self.halt_after, self.wave_ends[wave - 1]))
        return self.halt_after


def wave_ends(waves: Sequence[int | str], targets: int) -> tuple[int, ...]:
    """Each wave says how many targets have started with it, in all; a wave without a target of its own is left out."""
    ends: list[int] = []
    for wave in waves:
        end = min(targets, _share(wave, targets) if isinstance(wave, str) else wave)
        if end > (ends[-1] if ends else 0):
            ends.append(end)
    if not ends or ends[-1] < targets:
        ends.append(targets)
    return tuple(ends)


def _share(percentage: str, targets: int) -> int:
    return math.ceil(round(float(percentage.rstrip("%")) * targets / 100, 6))


def duration_seconds(text: str) -> float:
    match = DURATION.fullmatch(text)
    assert match is not None
    parts = zip(match.groups(default="0"), SECONDS, strict=True)
    return float(min(MOST_SECONDS, sum(int(number) * seconds for number, seconds in parts)))


@dataclass(slots=True)
class StepRollout:
    """How far the rollout of a step is."""

    rules: RolloutRules
    wave: int = 1  # targets up to this wave may start
    unfinished: int = 0  # targets of the open waves that have not ended
    failures: int = 0  # since the start or the last resume, like the next two
    sqlstate: str | None = None  # of the last ended targets
    same_errors: int = 0  # ended targets in a row with that SQLSTATE
    ended_at: float = 0.0  # when the last target ended
    halted: bool = False
    approved_wave: int = 1  # that an operator has opened
    resumed_at: str | None = None  # of the last resume
    wait: "Wait | None" = None  # as the database has it
    chain: "list[StepRollout]" = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.join([])

    def join(self, chain: "list[StepRollout]") -> None:
        """The step follows the steps of this chain, target by target: the rules of the first one hold for all."""
        chain.append(self)
        self.chain = chain

    @property
    def open_end(self) -> int:
        return self.rules.wave_ends[self.wave - 1] if self.rules.wave_ends else 0

    @property
    def waves(self) -> int:
        return len(self.rules.wave_ends)

    def may_start(self, ordinal: int) -> bool:
        return not self.halted and ordinal <= self.open_end

    def target_loaded(self, ordinal: int) -> None:
        if self.rules.wave_ends and ordinal > self.rules.wave_ends[-1]:  # it joined the step
            wave_ends = (*self.rules.wave_ends[:-1], ordinal)
            self.rules = replace(self.rules, wave_ends=wave_ends)
        if ordinal <= self.open_end:
            self.unfinished += 1

    def target_ended(self, ordinal: int, lifecycle: str, sqlstate: str | None, now: float) -> None:
        if ordinal <= self.open_end:
            self.unfinished -= 1
        self.ended_at = max(self.ended_at, now)
        self.count(lifecycle, sqlstate)

    def count(self, lifecycle: str, sqlstate: str | None) -> None:
        """A target that was cancelled or skipped says nothing about the script."""
        if lifecycle == "Succeeded":
            self.sqlstate, self.same_errors = None, 0
        elif lifecycle in FAILURES:
            self.failures += 1
            if sqlstate is None or retryable(sqlstate, self.rules.retry_on):
                self.sqlstate, self.same_errors = None, 0
            else:
                self.same_errors = self.same_errors + 1 if sqlstate == self.sqlstate else 1
                self.sqlstate = sqlstate

    def resume(self, resumed_at: str | None) -> None:
        """What failed before does not count any more, in no step of the chain."""
        self.halted, self.wait, self.resumed_at = False, None, resumed_at
        for each in self.chain:
            each.failures, each.sqlstate, each.same_errors = 0, None, 0


@dataclass(frozen=True, slots=True)
class Halt:
    rule: str  # FailureLimit or SameError
    message: str


@dataclass(frozen=True, slots=True)
class OpenWave:
    wave: int


@dataclass(frozen=True, slots=True)
class Wait:
    reason: str  # Gate or WavePause
    message: str
    until: float | None = None  # by the database's clock


Decision = Halt | OpenWave | Wait


def decide(
    rollout: StepRollout,
    *,
    waiting: int,
    same_error_limit: int,
    now: float,
    chain_busy: bool = False,
) -> Decision | None:
    """What follows from the ends of targets so far; None: nothing changes. `waiting`: targets that could start;
    `chain_busy`: targets of the open waves have not ended in the later steps of the chain.
    """
    if rollout.halted or not waiting:
        return None
    halt = _halt(rollout, same_error_limit)
    return halt if halt or chain_busy else _next_wave(rollout, now)


def _halt(rollout: StepRollout, same_error_limit: int) -> Halt | None:
    """By the rules of the first step of the chain; failures of all its steps count."""
    first = rollout.chain[0]
    rules, wave = first.rules, first.wave
    limit = rules.failure_limit(wave)
    failures = sum(each.failures for each in rollout.chain)
    if limit is not None and failures >= limit:
        return Halt(
            "FailureLimit",
            f"Halted in wave {wave} of {first.waves}: {_targets(failures)} failed, and haltAfterFailures is"
            f" {rules.halt_after}.",
        )
    worst = max(rollout.chain, key=lambda each: each.same_errors)
    if not rules.waves_given and 0 < same_error_limit <= worst.same_errors:
        return Halt(
            "SameError",
            f"Halted: {worst.same_errors} targets in a row failed with SQLSTATE {worst.sqlstate} and none"
            f" succeeded in between; haltAfterConsecutiveSameError of the account is {same_error_limit}.",
        )
    return None


def _next_wave(rollout: StepRollout, now: float) -> OpenWave | Wait | None:
    rules, wave = rollout.rules, rollout.wave
    if rollout.unfinished > 0 or wave == rollout.waves:
        return None
    if rules.manual and rollout.approved_wave <= wave:
        return Wait(
            "Gate",
            f"Wave {wave} of {rollout.waves} has ended. Resume the run to start the next one.",
        )
    until = max(each.ended_at for each in rollout.chain) + rules.pause
    if now < until and rollout.approved_wave <= wave:
        return Wait(
            "WavePause",
            f"Wave {wave} of {rollout.waves} has ended; the next one starts after a pause.",
            until,
        )
    return OpenWave(wave + 1)


def _targets(number: int) -> str:
    return "1 target" if number == 1 else f"{number} targets"
