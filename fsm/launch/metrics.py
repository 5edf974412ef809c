"""Metrics of the workload queue."""

from prometheus_client import Counter, Gauge, Histogram

from muster.core.telemetry import REGISTRY

ENDED = Counter(
    "muster_workloads_ended",
    "Finished workloads, by state and reason",
    ["kind", "state", "reason"],
    registry=REGISTRY,
)
LAG = Histogram(
    "muster_workload_lag_seconds",
    "From request to running",
    ["kind"],
    buckets=(0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200),
    registry=REGISTRY,
)
ACTIVE = Gauge("muster_workloads", "Unfinished workloads", ["kind", "state"], registry=REGISTRY)
QUEUED = Gauge(
    "muster_workload_queue", "Waiting workloads", ["group", "priority"], registry=REGISTRY
)
LAST_RUN = Gauge(
    "muster_workload_monitor_last_run_timestamp_seconds",
    "When this process last looked for overdue workloads",
    registry=REGISTRY,
)
