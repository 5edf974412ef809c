"""Numbers for Prometheus: those of this process, of the control plane, and what every engine and host counts."""

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
from workflows.metrics import EngineCounts, Histogram, HostCounts, Report, Series

JOB = ["account", "job"]
SERVER = ["account", "host", "server"]


async def rendered(db: Database) -> bytes:
    """Without the metadata database the numbers of this process alone."""
    try:
        series, reports, complete = await metrics.control_plane(db), await metrics.read(db), 1
    except Unavailable:
        series, reports, complete = [], [], 0
    own = [*of_installation(complete), *of_control_plane(series)]
    return telemetry.metrics() + text_of([*own, *families(reports)])


def of_installation(complete: int) -> Iterator[Metric]:
    build = InfoMetricFamily("muster_build", "Version of the API that answers")
    build.add_metric([], {"version": VERSION})
    yield build
    about = "1: engines and hosts are in this answer; 0: the metadata database could not be read"
    yield GaugeMetricFamily("muster_metrics_complete", about, value=complete)


def of_control_plane(series: Iterable[Series]) -> list[Metric]:
    made = {
        "workloads": GaugeMetricFamily(
            "muster_workloads",
            "Engines, hosts and commands that have not ended",
            labels=["kind", "state"],
        ),
        "queue": GaugeMetricFamily(
            "muster_workload_queue",
            "Those that wait for a launcher, by its group",
            labels=["group", "priority"],
        ),
        "operations": GaugeMetricFamily(
            "muster_operations_active", "Long-running operations that have not ended", labels=[]
        ),
        "due": GaugeMetricFamily(
            "muster_lifecycles_due",
            "Servers, databases and accounts whose next step waits for an FSM process",
            labels=[],
        ),
        "tick": GaugeMetricFamily(
            "muster_control_plane_tick_timestamp_seconds",
            "When a process last looked for overdue workloads (monitor), or served the Workload API (api)",
            labels=["loop"],
        ),
    }
    for each in series:
        made[each.series].add_metric(each.labels, each.value)
    return [*made.values()]


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
            "muster_targets_running", "Targets that are reserved for a host or run", labels=JOB
        ),
        "slots": CounterMetricFamily(
            "muster_schedule_slots",
            "Slots that fired, or were coalesced, missed or skipped",
            labels=["account", "outcome"],
        ),
        "deliveries": CounterMetricFamily(
            "muster_webhook_attempts",
            "Attempts to deliver an event to a webhook: delivered, retried, or failed after the last attempt",
            labels=["account", "outcome"],
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
    for outcome, number in counts.deliveries.items():
        families["deliveries"].add_metric([account, outcome], number)
    _add_histogram(families["lag"], [account], counts.lag)
    if counts.last_tick is not None:
        families["tick"].add_metric([account], counts.last_tick)


def _host_families() -> dict[str, Any]:
    return {
        "open": GaugeMetricFamily(
            "muster_server_sessions",
            "Sessions at a server that a host has open, lent or idle; of the first 500 servers",
            labels=SERVER,
        ),
        "waiting": GaugeMetricFamily(
            "muster_server_session_waiters",
            "Tasks that wait for a session at a server",
            labels=SERVER,
        ),
        "durations": HistogramMetricFamily(
            "muster_attempt_duration_seconds",
            "Time of an attempt at its target, without the wait for a session",
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
