"""The page that Prometheus reads: names, labels, and nothing that would make it invalid."""

from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from api import metrics
from engine.process.metrics import CoreMetrics, HostMetrics
from muster.core import telemetry
from workflows.metrics import EngineCounts, HostCounts, Report


def read(report, kind):
    """As it comes from the database."""
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode(report)), kind)


def some_reports():
    core, host = CoreMetrics(), HostMetrics()
    core.attempt_ended("nightly", "Succeeded")
    core.run_ended("nightly", "Succeeded")
    core.slots.update(fired=2, missed=1)
    core.lag.observe(0.3)
    core.lag.observe(4000.0)
    core.last_tick = 1000.5
    host.attempt_ended({"running": 250.0})
    engine = read(core.report([("nightly", 9, 4)]), EngineCounts)
    hosts = [read(host.report([("eu1", 3, 1)]), HostCounts)] * 2
    return [
        Report("home/jobs", "", 1001.0, engine),
        *(Report("home/jobs", str(n), 1002.0, each) for n, each in enumerate(hosts)),
    ]


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_engines_and_hosts_count_has_names_and_labels():
    found = samples(metrics.text_of(metrics.families(some_reports())).decode())

    job = (("account", "home/jobs"), ("job", "nightly"))
    assert found["muster_target_attempts_total", *job, ("state", "Succeeded")] == 1
    assert found["muster_runs_total", *job, ("state", "Succeeded")] == 1
    assert found["muster_runs_active", *job] == 1
    assert found["muster_queue_depth", *job] == 9
    assert found["muster_targets_running", *job] == 4
    account = ("account", "home/jobs")
    assert found["muster_schedule_slots_total", account, ("outcome", "missed")] == 1
    assert found["muster_scheduler_last_tick_timestamp_seconds", account] == 1000.5
    lag = {
        key[2][1]: n for key, n in found.items() if key[0] == "muster_schedule_lag_seconds_bucket"
    }
    assert (lag["0.1"], lag["0.5"], lag["3600.0"], lag["+Inf"]) == (0, 1, 1, 2)
    assert found["muster_schedule_lag_seconds_sum", account] == 4000.3
    for host in ("0", "1"):
        where = (account, ("host", host))
        assert found["muster_server_sessions", *where, ("server", "eu1")] == 3
        assert found["muster_server_session_waiters", *where, ("server", "eu1")] == 1
        assert found["muster_attempt_duration_seconds_count", *where] == 1
    heartbeat = "muster_engine_heartbeat_timestamp_seconds"
    assert found[heartbeat, account, ("host", "")] == 1001


def test_no_name_is_described_twice():
    families = [*metrics.of_installation(1), *metrics.families(some_reports())]
    text = (telemetry.metrics() + metrics.text_of(families)).decode()

    described = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]

    assert sorted(described) == sorted(set(described))


def test_an_installation_without_engines_has_no_series_of_them():
    text = metrics.text_of(metrics.families([])).decode()

    assert samples(text) == {}


def test_the_page_about_metrics_has_every_name():
    page = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text("utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| `muster_"))
    text = metrics.text_of([*metrics.of_installation(1), *metrics.families(some_reports())])

    families = text_string_to_metric_families(text.decode())
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in families}
    names -= {"muster_build"}  # its sample is muster_build_info

    assert {name for name in names if f"`{name}`" not in rows} == set()
    assert "`muster_build_info`" in rows
