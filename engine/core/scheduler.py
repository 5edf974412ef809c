"""Starts runs by schedule: each slot exactly once, also across changes of leadership.

The time is that of the database, whose rows record the decided slots; `decide` is a function of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from engine.context.core_context import CoreContext
from engine.core.service import Service
from muster.core import telemetry
from muster.core.interval import IntervalType
from muster.core.schedule import GRACE, Misfire, Schedule, ScheduleType, grace, slots
from muster.core.sql import Queries

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "schedules.sql")

MAX_JOBS = 250  # of one read
MAX_ROWS = 2_000  # slots of one write, unless a single job has more
MAX_SLOTS = 1_440  # of one job that get a row of their own after an outage: a day of minutes
FIRST_SPAN = timedelta(days=2)
LATE, NEWER = "Late", "Newer"
MORE = "UntilNextRow"  # the row stands for all slots up to the next row
PUNCTUAL = timedelta(seconds=5)  # the least misfire limit of a schedule
MIN_PAUSE = timedelta(milliseconds=5)
LOCKED_PAUSE = timedelta(milliseconds=100)  # before a job is read again whose row is locked


class SlotOutcome(StrEnum):
    # If the start is refused, the database records the slot as skipped, or a Once waits.
    FIRED = "fired"
    COALESCED = "coalesced"
    MISSED = "missed"


@dataclass(frozen=True, kw_only=True)
class ScheduledJob:
    """A row of due_jobs."""

    job_id: UUID
    job_name: str
    row_version: int
    interval_type: str
    interval_count: int
    cron: str | None
    time_zone: str | None
    start_time: datetime
    end_time: datetime
    since: datetime  # when the schedule was last enabled or edited
    misfire_policy: str
    misfire_within_seconds: int | None
    last_slot: datetime | None  # the last decided one
    now: datetime

    def schedule(self) -> Schedule:
        within, interval = self.misfire_within_seconds, None
        type = ScheduleType.ONCE if self.interval_type == "Once" else ScheduleType.RECURRING
        if self.cron is not None:
            type = ScheduleType.CRON
        if type is ScheduleType.RECURRING:
            interval = IntervalType(self.interval_type)
        return Schedule(
            type=type,
            enabled=True,
            start=self.start_time,
            end=self.end_time,
            interval_type=interval,
            interval_count=self.interval_count if interval else None,
            cron=self.cron,
            time_zone=self.time_zone,
            misfire=Misfire(self.misfire_policy),
            within=None if within is None else timedelta(seconds=within),
        )


@dataclass(frozen=True)
class Slot:
    at: datetime
    outcome: SlotOutcome
    reason: str | None = None


@dataclass(frozen=True)
class Decision:
    job: ScheduledJob
    slots: tuple[Slot, ...]
    next: datetime | None  # None: never again


def decide(job: ScheduledJob) -> Decision:
    """The newest due slot fires unless it is too late. Earlier ones are coalesced into it, or missed when they
    are too late. A decision is final.
    """
    schedule, now = job.schedule(), job.now
    due, next_slot, cut = _due(job, schedule)
    decisions = []
    for number, slot in enumerate(due):
        more = MORE if cut and number == 0 else ""
        if _late(schedule, slot, now):
            decisions.append(Slot(slot, SlotOutcome.MISSED, LATE + more))
        elif slot < due[-1]:
            decisions.append(Slot(slot, SlotOutcome.COALESCED, NEWER + more))
        else:
            decisions.append(Slot(slot, SlotOutcome.FIRED))
    return Decision(job, tuple(decisions), next_slot)


def _late(schedule: Schedule, slot: datetime, now: datetime) -> bool:
    lateness = now - slot
    if lateness <= PUNCTUAL:
        return False
    if lateness > GRACE and schedule.within is None and schedule.type is not ScheduleType.ONCE:
        return True  # no default misfire limit is longer, so it need not be computed
    return lateness > grace(schedule, slot)


def _due(job: ScheduledJob, schedule: Schedule) -> tuple[list[datetime], datetime | None, bool]:
    """The undecided slots up to now, ascending, and the slot after them.

    True: there are too many, and the first one stands for more. The search goes backwards in growing spans,
    so a year's outage costs no more than a day's.
    """
    now, span = job.now, FIRST_SPAN
    begin = max(job.since, job.last_slot or job.since)
    while True:
        whole = now - begin <= span
        after = job.last_slot if whole else now - span
        due, next_slot = _split(slots(schedule, anchor=job.since, after=after), now)
        if len(due) > MAX_SLOTS:
            first = next(slots(schedule, anchor=job.since, after=job.last_slot))
            return [first, *due[-MAX_SLOTS:]], next_slot, True
        if whole:
            return due, next_slot, False
        span *= 8


def _split(ascending: Iterator[datetime], now: datetime) -> tuple[list[datetime], datetime | None]:
    due: list[datetime] = []
    for slot in ascending:
        if slot > now:
            return due, slot
        due.append(slot)
    return due, None


class Scheduler(Service):
    name = "scheduler"
    channels = ("muster_schedule",)

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._wait = context.heartbeat

    @property
    def pause(self) -> timedelta:
        return min(self._wait, self.context.heartbeat)

    async def run_once(self) -> None:
        """Decides the slots of a paused account too: the database records them as skipped, but a Once waits."""
        beat = self.context.cluster_state.beat
        self.status = "draining" if beat.draining else "paused" if beat.paused else "idle"
        self._wait = self.context.heartbeat
        if not beat.draining:
            await self.decide_due()
        self.context.metrics.last_tick = self.context.clock.now().timestamp()

    async def decide_due(self) -> None:
        while due := await self._read_due():
            if not await self._decide(due):
                self._wait = LOCKED_PAUSE
                return

    async def _read_due(self) -> list[ScheduledJob]:
        """Reads the jobs that are due; sets the pause when there are none."""
        store = self.context.store
        async with store.calling() as tx:
            rows = await tx.fetch(Q.due_jobs, store.epoch, MAX_JOBS)
            if not rows:
                self._wait = _pause_until(await tx.fetchval(Q.next_slot, store.epoch))
        return [ScheduledJob(**dict(row)) for row in rows]

    async def _decide(self, due: list[ScheduledJob]) -> int:
        """Returns the number of decided jobs; a job that was edited meanwhile is not decided."""
        decided = rows = 0
        batch: list[Decision] = []
        for job in due:
            try:
                decision = decide(job)
            except Exception as error:
                log.exception("schedule is invalid", job=job.job_name)
                decided += await self._disable(job, error)
                continue
            batch.append(decision)
            rows += len(decision.slots)
            if rows >= MAX_ROWS:
                decided += await self._record(batch)
                batch, rows = [], 0
        return decided + (await self._record(batch) if batch else 0)

    async def _record(self, batch: list[Decision]) -> int:
        self.heartbeat()
        store = self.context.store
        async with store.calling() as tx:
            row = await tx.fetchrow(Q.decide_slots, store.epoch, *_columns(batch))
        counts = dict(row or {})
        decided = int(counts.pop("jobs", 0))
        self.context.metrics.slots.update(counts)
        if any(counts.values()):
            log.info("decided slots", **counts)
        for slot, now in _fired(batch):
            self.context.metrics.lag.observe((now - slot).total_seconds())
        return decided

    async def _disable(self, job: ScheduledJob, error: Exception) -> int:
        """Otherwise the job would be due with every read; an edit enables its schedule again."""
        why = str(error) or type(error).__name__
        store = self.context.store
        async with store.calling() as tx:
            return int(
                await tx.fetchval(Q.break_schedule, store.epoch, job.job_id, job.row_version, why)
            )


def _fired(batch: list[Decision]) -> Iterator[tuple[datetime, datetime]]:
    """Each slot that fires, and when that was decided."""
    for decision in batch:
        for slot in decision.slots:
            if slot.outcome is SlotOutcome.FIRED:
                yield slot.at, decision.job.now


def _pause_until(seconds: float | None) -> timedelta:
    if seconds is None:
        return timedelta.max
    # A job that is due and was not returned has a locked row.
    return max(timedelta(seconds=seconds), MIN_PAUSE) if seconds > 0 else LOCKED_PAUSE


def _columns(batch: list[Decision]) -> Iterator[list[Any]]:
    yield [decision.job.job_id for decision in batch]
    yield [decision.job.row_version for decision in batch]
    yield [decision.next for decision in batch]
    rows = [
        (decision.job.job_id, slot.at, slot.outcome, slot.reason)
        for decision in batch
        for slot in decision.slots
    ]
    for number in range(4):
        yield [row[number] for row in rows]
