"""Reports of engines and hosts as they stand in the metadata database; none of them can spoil the others."""

import pytest

from workflows import metrics
from workflows.metrics import EngineCounts, HostCounts

GOOD = {"sessions": [["eu1", 3, 1]], "durations": {"buckets": [1.0], "counts": [2, 0], "sum": 0.5}}


class Rows:
    """A database that answers with these rows."""

    def __init__(self, *reports):
        self._rows = [
            {"account": "home/jobs", "kind": kind, "number": "0", "heartbeat": 1.0, "metrics": each}
            for kind, each in reports
        ]

    async def fetch(self, query, most):
        return self._rows[:most]


async def test_a_process_that_sends_no_metrics_yet_is_there_with_its_heartbeat():
    (report,) = await metrics.read(Rows(("engine", None)))

    assert (report.account, report.heartbeat, report.counts) == ("home/jobs", 1.0, EngineCounts())


@pytest.mark.parametrize(
    "wrong",
    [
        {"sessions": "many"},
        {"sessions": [["eu1", "three", 1]]},
        {"sessions": [["eu1", 1, 1]] * (metrics.MOST_SERIES + 1)},
        {"durations": {"buckets": [1.0]}},
        [],
    ],
)
async def test_a_report_that_can_not_be_read_is_left_out(wrong):
    (report,) = await metrics.read(Rows(("host", wrong), ("host", GOOD)))

    assert isinstance(report.counts, HostCounts)
    assert report.counts.sessions == [("eu1", 3, 1)]
