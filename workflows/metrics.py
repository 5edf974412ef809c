"""What engines and hosts count, which each sends with its heartbeats, and what the control plane does now."""

from typing import Any

import msgspec

from muster.core import telemetry
from muster.core.db import Database, Row
from muster.core.sql import Queries

Q = Queries("workflows.sql", "metrics.sql")
log = telemetry.get(__name__)

MOST_PROCESSES = 2_000  # of one scrape
MOST_SERIES = 2_000  # of one list of one process; engine/process/metrics.py has fewer names


class Histogram(msgspec.Struct, frozen=True):
    buckets: list[float]
    counts: list[int]  # of each bucket, and of what is above
    sum: float


class EngineCounts(msgspec.Struct, frozen=True, rename="camel"):
    attempts: list[tuple[str, str, int]] = []  # job, state
    runs: list[tuple[str, str, int]] = []  # that ended: job, state
    live: list[tuple[str, int, int, int]] = []  # job: runs, targets that wait, targets that run
    slots: dict[str, int] = {}  # by outcome
    deliveries: dict[str, int] = {}  # by outcome
    lag: Histogram | None = None
    last_tick: float | None = None


class HostCounts(msgspec.Struct, frozen=True):
    sessions: list[tuple[str, int, int]] = []  # server: open, requests that wait
    durations: Histogram | None = None


class Report(msgspec.Struct, frozen=True):
    account: str  # SERVER/NAME
    number: str  # of a host
    heartbeat: float
    counts: EngineCounts | HostCounts


class Series(msgspec.Struct, frozen=True):
    """One number of the control plane."""

    series: str
    labels: list[str]
    value: float


async def control_plane(db: Database) -> list[Series]:
    rows = await db.fetch(Q.control_plane)
    return [Series(row["series"], list(row["labels"]), row["value"]) for row in rows]


async def read(db: Database) -> list[Report]:
    """One query over the processes that run; history is not read."""
    rows = await db.fetch(Q.engine_reports, MOST_PROCESSES)
    reports = [_report(row) for row in rows]
    return [each for each in reports if each is not None]


def _report(row: Row) -> Report | None:
    """None: of another version, or not what one of ours would send."""
    document = {} if row["metrics"] is None else row["metrics"]
    counts: EngineCounts | HostCounts
    try:
        if row["kind"] == "engine":
            counts = msgspec.convert(document, EngineCounts)
        else:
            counts = msgspec.convert(document, HostCounts)
    except msgspec.ValidationError as error:
        log.warning("metrics of a process can't be read", account=row["account"], why=str(error))
        return None
    if any(len(each) > MOST_SERIES for each in _lists(counts)):
        log.warning("a process sends too many metrics", account=row["account"])
        return None
    return Report(row["account"], row["number"], row["heartbeat"], counts)


def _lists(counts: EngineCounts | HostCounts) -> list[Any]:
    if isinstance(counts, HostCounts):
        return [counts.sessions]
    return [counts.attempts, counts.runs, counts.live, counts.slots]
