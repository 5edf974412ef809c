"""What a core and a host count, and how much of it they send."""

import msgspec

from engine.process.metrics import MOST_JOBS, OTHERS, CoreMetrics, Histogram, HostMetrics


def sent(report):
    return msgspec.json.decode(msgspec.json.encode(report))


def test_a_histogram_counts_each_value_in_its_bucket():
    histogram = Histogram((1.0, 5.0))

    for value in (0.5, 1.0, 1.1, 5.0, 7.0, 8.0):
        histogram.observe(value)

    assert sent(histogram.report()) == {"buckets": [1.0, 5.0], "counts": [2, 2, 2], "sum": 22.6}


def test_attempts_and_runs_are_counted_by_job_and_state():
    metrics = CoreMetrics()
    for state in ("Succeeded", "Succeeded", "Failed"):
        metrics.attempt_ended("nightly", state)
    metrics.run_ended("nightly", "Failed")

    report = sent(metrics.report([("nightly", 7, 2), ("nightly", 1, 0), ("weekly", 0, 1)]))

    assert report["attempts"] == [["nightly", "Succeeded", 2], ["nightly", "Failed", 1]]
    assert report["runs"] == [["nightly", "Failed", 1]]
    assert report["live"] == [["nightly", 2, 8, 2], ["weekly", 1, 0, 1]]


def test_further_jobs_have_one_series_together():
    metrics = CoreMetrics()
    for number in range(MOST_JOBS + 50):
        metrics.attempt_ended(f"job {number}", "Succeeded")
    metrics.attempt_ended("job 0", "Succeeded")

    attempts = {job: number for job, _, number in metrics.report([])["attempts"]}

    assert len(attempts) == MOST_JOBS + 1
    assert (attempts["job 0"], attempts[OTHERS]) == (2, 50)


def test_a_host_reports_sessions_by_server_and_how_long_attempts_took():
    metrics = HostMetrics()
    metrics.attempt_ended({"waiting": 60_000.0, "connecting": 5.0, "running": 45.0})
    metrics.attempt_ended({})

    report = sent(metrics.report([("eu1", 3, 1), ("us1", 2, 0), ("eu1", 1, 0)]))

    assert report["sessions"] == [["eu1", 4, 1], ["us1", 2, 0]]
    assert (sum(report["durations"]["counts"]), report["durations"]["sum"]) == (1, 0.05)
