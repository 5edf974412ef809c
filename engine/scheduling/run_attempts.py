"""The attempts of a run: whether another one follows when a pass over its targets has ended, and when.

    rules = RunAttemptRules()                             # 5 in a row and 10 without progress, 20 with progress
    counters = Counters.of([0, 0, 12])                    # two attempts without progress, one with
    decide(rules, counters, Pass(newly_succeeded=0, remaining=3), now)     # Decision(WAIT, due=now + 10, …)

An attempt is a pass over the targets that have not succeeded. It made progress if at least one of them newly succeeded.
Pure: the counters follow from the stored attempts, so a core that starts again decides the same.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

import msgspec


class RunAttemptRules(msgspec.Struct, frozen=True, rename="camel"):
    """As a run keeps them from its creation on."""

    max_successive_without_progress: int = 5
    max_without_progress: int = 10
    max_with_progress: int = 20
    # After the first, second, … successive attempt without progress; the last number holds for all that follow.
    backoff_seconds: tuple[int, ...] = (10, 30, 90, 270)

    def pause(self, successive: int) -> int:
        """Seconds before the next attempt, after so many successive attempts without progress."""
        if not successive or not self.backoff_seconds:
            return 0
        return self.backoff_seconds[min(successive, len(self.backoff_seconds)) - 1]


class Counters(msgspec.Struct, frozen=True):
    """Of the failed attempts of a run."""

    successive: int = 0  # without progress, since the last attempt with progress
    without_progress: int = 0
    with_progress: int = 0

    @classmethod
    def of(cls, newly_succeeded: Iterable[int]) -> Self:
        """From the targets that newly succeeded in each attempt, in their order."""
        counters = cls()
        for number in newly_succeeded:
            counters = counters.after(progress=number > 0)
        return counters

    def after(self, *, progress: bool) -> Self:
        if progress:
            return type(self)(0, self.without_progress, self.with_progress + 1)
        return type(self)(self.successive + 1, self.without_progress + 1, self.with_progress)


class Pass(msgspec.Struct, frozen=True):
    """What an attempt came to, when the last of its targets has ended."""

    newly_succeeded: int
    remaining: int  # targets that another attempt would take


class Next(StrEnum):
    END = "end"  # the run goes on to its end, as its targets tell
    WAIT = "wait"  # the attempt has failed, and another one follows


class Decision(msgspec.Struct, frozen=True):
    next: Next
    counters: Counters  # with this attempt
    due: float | None = None  # when the next attempt begins
    limit: str | None = None  # the limit that was reached
    message: str = ""


def decide(rules: RunAttemptRules, earlier: Counters, ended: Pass, now: float) -> Decision:
    """`earlier`: of the attempts before the one that has ended."""
    counters = earlier.after(progress=ended.newly_succeeded > 0)
    if not ended.remaining:
        return Decision(Next.END, counters)
    reached = _reached(rules, counters)
    if reached is not None:
        limit, number = reached
        return Decision(
            Next.END, counters, limit=limit, message=f"No further attempt: {limit} is {number}."
        )
    due = now + rules.pause(counters.successive)
    return Decision(Next.WAIT, counters, due=due, message=_sentence(ended))


def _reached(rules: RunAttemptRules, counters: Counters) -> tuple[str, int] | None:
    limits = (
        (
            "maxSuccessiveWithoutProgress",
            counters.successive,
            rules.max_successive_without_progress,
        ),
        ("maxWithoutProgress", counters.without_progress, rules.max_without_progress),
        ("maxWithProgress", counters.with_progress, rules.max_with_progress),
    )
    return next(((name, most) for name, number, most in limits if number >= most), None)


def _sentence(ended: Pass) -> str:
    remain = "1 target remains" if ended.remaining == 1 else f"{ended.remaining} targets remain"
    return f"{ended.newly_succeeded or 'none'} newly succeeded, {remain}"
