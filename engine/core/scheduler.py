"""Creates the job executions whose time has come: each slot exactly once, whoever is in charge.

The database's clock is the time, and its rows say which slots are decided; `decide` follows from both.
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

JOBS = 250  # that are read at once
ROWS = 2_000  # slots that are written at once, or one job's
MOST = 1_440  # slots of one job that get a row of their own after an outage: a day of minutes
SPAN = timedelta(days=2)
LATE, NEWER = "Late", "Newer"
MORE = "UntilNextRow"  # so were all behind it up to the next row
PUNCTUAL = timedelta(seconds=5)  # no schedule can ask for less lateness
SHORTEST = timedelta(milliseconds=5)
BUSY = timedelta(milliseconds=100)  # until a job is looked at again that somebody holds


class SlotOutcome(StrEnum):
    FIRED = (
        "fired"  # unless it is refused: then the database records it as skipped, or a Once waits
    )
    COALESCED = "coalesced"
    MISSED = "missed"


@dataclass(frozen=True, kw_only=True)
class ScheduledJob:
    """As the database gave it."""

    job_id: UUID
    job_name: str
    row_version: int
    interval_type: str
    interval_count: int
    cron: str | None
    time_zone: str | None
    start_time: datetime
    end_time: datetime
    since: datetime  # when the schedule was enabled or edited last
    misfire_policy: str
    misfire_within_seconds: int | None
    last_slot: datetime | None  # the last one up to now that is decided
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
    """The newest slot that is due fires if it is not too late; an earlier one that is not too late either
    gives way to it, and what is too late was missed. What is decided stays decided.
    """
    schedule, now = job.schedule(), job.now
    due, next_slot, cut = _due(job, schedule)
    decided = []
    for number, slot in enumerate(due):
        more = MORE if cut and number == 0 else ""
        if _late(schedule, slot, now):
            decided.append(Slot(slot, SlotOutcome.MISSED, LATE + more))
        elif slot < due[-1]:
            decided.append(Slot(slot, SlotOutcome.COALESCED, NEWER + more))
        else:
            decided.append(Slot(slot, SlotOutcome.FIRED))
    return Decision(job, tuple(decided), next_slot)


def _late(schedule: Schedule, slot: datetime, now: datetime) -> bool:
    lateness = now - slot
    if lateness <= PUNCTUAL:
        return False
    if lateness > GRACE and schedule.within is None and schedule.type is not ScheduleType.ONCE:
        return True  # no default is longer, and it need not be looked for
    return lateness > grace(schedule, slot)


def _due(job: ScheduledJob, schedule: Schedule) -> tuple[list[datetime], datetime | None, bool]:
    """The slots up to now that are not decided, rising, and the one behind them.

    True: they are too many, so that the first stands for more. They are looked for backwards in growing
    spans: a year's outage costs no more than a day's.
    """
    now, span = job.now, SPAN
    begin = max(job.since, job.last_slot or job.since)
    while True:
        whole = now - begin <= span
        after = job.last_slot if whole else now - span
        found, next_slot = _split(slots(schedule, anchor=job.since, after=after), now)
        if len(found) > MOST:
            first = next(slots(schedule, anchor=job.since, after=job.last_slot))
            return [first, *found[-MOST:]], next_slot, True
        if whole:
            return found, next_slot, False
        span *= 8


def _split(rising: Iterator[datetime], now: datetime) -> tuple[list[datetime], datetime | None]:
    found: list[datetime] = []
    for slot in rising:
        if slot > now:
            return found, slot
        found.append(slot)
    return found, None


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
        """Slots of a paused account are decided too: the database records each as skipped, but a Once waits."""
        beat = self.context.cluster_state.beat
        self.status = "draining" if beat.draining else "paused" if beat.paused else "idle"
        self._wait = self.context.heartbeat
        if not beat.draining:
            await self.begin()

    async def begin(self) -> None:
        while due := await self._look():
            if not await self._settle(due):
                self._wait = BUSY
                return

    async def _look(self) -> list[ScheduledJob]:
        """What is due; if nothing is, how long the pause may be."""
        store = self.context.store
        async with store.calling() as tx:
            rows = await tx.fetch(Q.due_jobs, store.epoch, JOBS)
            if not rows:
                self._wait = _until(await tx.fetchval(Q.next_slot, store.epoch))
        return [ScheduledJob(**dict(row)) for row in rows]

    async def _settle(self, due: list[ScheduledJob]) -> int:
        """How many jobs were settled; those that were edited meanwhile are not."""
        settled = rows = 0
        batch: list[Decision] = []
        for job in due:
            try:
                decision = decide(job)
            except Exception as error:
                log.exception("a schedule can't be followed", job=job.job_name)
                settled += await self._break(job, error)
                continue
            batch.append(decision)
            rows += len(decision.slots)
            if rows >= ROWS:
                settled += await self._record(batch)
                batch, rows = [], 0
        return settled + (await self._record(batch) if batch else 0)

    async def _record(self, batch: list[Decision]) -> int:
        self.last_heartbeat = self.context.clock.monotonic()
        store = self.context.store
        async with store.calling() as tx:
            done = await tx.fetchrow(Q.decide_slots, store.epoch, *_columns(batch))
        told = dict(done or {})
        settled = int(told.pop("jobs", 0))
        if any(told.values()):
            log.info("slots were decided", **told)
        return settled

    async def _break(self, job: ScheduledJob, error: Exception) -> int:
        """It must not come back with each look; an edit makes it count again."""
        why = str(error) or type(error).__name__
        store = self.context.store
        async with store.calling() as tx:
            return int(
                await tx.fetchval(Q.break_schedule, store.epoch, job.job_id, job.row_version, why)
            )


def _until(seconds: float | None) -> timedelta:
    if seconds is None:
        return timedelta.max
    # What is due and was not given is held by somebody.
    return max(timedelta(seconds=seconds), SHORTEST) if seconds > 0 else BUSY


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
