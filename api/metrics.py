"""Numbers for Prometheus: those of this process, and what every engine and host counts."""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from muster.core import telemetry
from muster.core.db import Database
from muster.core.errors import Unavailable
from muster.core.version import VERSION
from workflows import metrics
from workflows.metrics import EngineCounts, Histogram, HostCounts, Report

JOB = ["account", "job"]
SERVER = ["account", "host", "server"]


async def rendered(db: Database) -> bytes:
    """Without the metadata database the numbers of this process alone."""
    try:
        reports, complete = await metrics.read(db), 1
    except Unavailable:
        reports, complete = [], 0
    return telemetry.metrics() + text_of([*of_installation(complete), *families(reports)])


def of_installation(complete: int) -> Iterator[Metric]:
    build = InfoMetricFamily("muster_build", "Version of the API that answers")
    build.add_metric([], {"version": VERSION})
    yield build
    about = "1: engines and hosts are in this answer; 0: the metadata database could not be read"
    yield GaugeMetricFamily("muster_metrics_complete", about, value=complete)


def families(reports: Iterable[Report]) -> list[Metric]:
    """Each series once; a process that was replaced begins to count at 0."""
    engine, host = _engine_families(), _host_families()
    heartbeat = GaugeMetricFamily(
        "muster_engine_heartbeat_timestamp_seconds",
        "When the engine (host empty) or a host last reported",
        labels=["account", "host"],
    )
    for each in reports:
        heartbeat.add_metric([each.account, each.number], each.heartbeat)
        if isinstance(each.counts, EngineCounts):
            _add_engine(engine, each.account, each.counts)
        else:
            _add_host(host, each, each.counts)
    return [heartbeat, *engine.values(), *host.values()]


def _engine_families() -> dict[str, Any]:
    return {
        "runs": CounterMetricFamily(
            "muster_runs", "Runs that ended, by lifecycle", labels=[*JOB, "state"]
        ),
        "active": GaugeMetricFamily("muster_runs_active", "Runs that have not ended", labels=JOB),
        "attempts": CounterMetricFamily(
            "muster_target_attempts",
            "Attempts that ended, by the lifecycle of the target after it; WaitingForRetry: another one follows",
            labels=[*JOB, "state"],
        ),
        "queue": GaugeMetricFamily("muster_queue_depth", "Targets that wait", labels=JOB),
        "running": GaugeMetricFamily(
            "muster_targets_running", "Targets that are reserved or run", labels=JOB
        ),
        "slots": CounterMetricFamily(
            "muster_schedule_slots", "Slots of schedules, by outcome", labels=["account", "outcome"]
        ),
        "lag": HistogramMetricFamily(
            "muster_schedule_lag_seconds",
            "From the time of a slot to the decision to start it",
            labels=["account"],
        ),
        "tick": GaugeMetricFamily(
            "muster_scheduler_last_tick_timestamp_seconds",
            "When the scheduler last looked for due slots",
            labels=["account"],
        ),
    }


def _add_engine(families: dict[str, Any], account: str, counts: EngineCounts) -> None:
    for job, state, number in counts.runs:
        families["runs"].add_metric([account, job, state], number)
    for job, state, number in counts.attempts:
        families["attempts"].add_metric([account, job, state], number)
    for job, runs, waiting, running in counts.live:
        families["active"].add_metric([account, job], runs)
        families["queue"].add_metric([account, job], waiting)
        families["running"].add_metric([account, job], running)
    for outcome, number in counts.slots.items():
        families["slots"].add_metric([account, outcome], number)
    _add_histogram(families["lag"], [account], counts.lag)
    if counts.last_tick is not None:
        families["tick"].add_metric([account], counts.last_tick)


def _host_families() -> dict[str, Any]:
    return {
        "open": GaugeMetricFamily(
            "muster_server_sessions",
            "Sessions at a server that a host has open, lent or idle",
            labels=SERVER,
        ),
        "waiting": GaugeMetricFamily(
            "muster_server_session_waiters", "Tasks that wait for a session", labels=SERVER
        ),
        "durations": HistogramMetricFamily(
            "muster_attempt_duration_seconds",
            "Time of an attempt at its target, from connecting to its end",
            labels=["account", "host"],
        ),
    }


def _add_host(families: dict[str, Any], report: Report, counts: HostCounts) -> None:
    where = [report.account, report.number]
    for server, opened, waiting in counts.sessions:
        families["open"].add_metric([*where, server], opened)
        families["waiting"].add_metric([*where, server], waiting)
    _add_histogram(families["durations"], where, counts.durations)


def _add_histogram(
    family: HistogramMetricFamily, labels: list[str], histogram: Histogram | None
) -> None:
    if histogram is None or len(histogram.counts) != len(histogram.buckets) + 1:
        return
    total, buckets = 0, []
    bounds = [*(str(bound) for bound in histogram.buckets), "+Inf"]
    for bound, number in zip(bounds, histogram.counts, strict=True):
        total += number
        buckets.append((bound, total))
    family.add_metric(labels, buckets, histogram.sum)


class _Families:
    """A collector of what is there already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def text_of(families: list[Metric]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry)
