"""Lists of runs: what is left out, and in which form times are typed."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, JOB, a_run, listed

OF_ALL = f"{ACCOUNT}/executions"
OF_ONE = f"{JOB}/executions"


@pytest.fixture(autouse=True)
def runs(rest):
    for path in (OF_ALL, OF_ONE):
        rest.on("GET", path, listed(a_run()))
    rest.on("GET", f"{JOB}/nextRuns", listed({"time": "2031-01-01T03:00:00Z"}), listed())


@pytest.mark.parametrize(
    "words", [["run", "list", "nightly"], ["run", "list", "--job", "nightly"], ["job", "history", "nightly"]]
)  # fmt: skip
def test_the_runs_of_a_job_are_asked_for_below_the_job(muster, rest, words):
    assert muster(*words, "--top", "3", "--deleted")[0] == 0
    assert rest.asked(OF_ONE) == [{"$top": "3", "includeDeleted": "true"}]
    assert rest.asked(OF_ALL) == []


def test_lifecycles_are_typed_in_any_case(muster, rest):
    muster("run", "list", "--lifecycle", "failed,timed-out")
    muster("run", "list", "--lifecycle", "Running")

    assert [each["lifecycle"] for each in rest.asked(OF_ALL)] == [
        "Failed,TimedOut", "InProgress,WaitingForChildJobExecutions",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "targets", "origin"),
    [
        ({"targets": {"total": 60, "done": 41, "succeeded": 40, "failed": 1}, "origin": "slot"}, "40 of 60", "schedule"),
        ({"targets": {"total": 20000}, "origin": "caller", "actor": "ann"}, "of 20000", "ann"),
        ({"targets": {"total": 0}, "origin": "plan", "actor": "ann"}, "", "plan, by ann"),
        ({"origin": "caller", "actor": "ann"}, "", "ann"),
    ],
)  # fmt: skip
def test_a_row_has_targets_and_where_the_run_comes_from(muster, rest, properties, targets, origin):
    rest.on("GET", OF_ALL, listed(a_run(**properties)))

    names, row = (line.split("\t") for line in muster("run", "list", "-o", "tsv")[1].splitlines())
    shown = dict(zip(names, row, strict=True))
    assert (shown["targets"], shown["origin"]) == (targets, origin)


def test_since_and_until_are_times_or_how_long_ago_it_was(muster, rest):
    muster("run", "list", "--since", "2h", "--until", "2031-01-01T02:00:00+01:00")

    (asked,) = rest.asked(OF_ALL)
    ago = datetime.now(UTC) - datetime.fromisoformat(asked["createTimeMin"])
    assert timedelta(hours=2) <= ago < timedelta(hours=2, minutes=1)
    assert asked["createTimeMax"] == "2031-01-01T01:00:00Z"


def test_a_time_without_a_zone_is_local(muster, rest, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        muster("run", "list", "--since", "2031-01-01T09:00")
    finally:
        monkeypatch.undo()
        time.tzset()

    assert rest.asked(OF_ALL)[0]["createTimeMin"] == "2031-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--since", "yesterday"], "neither how long ago"),
        (["nightly", "--job", "nightly"], "either JOB or --job"),
    ],
)
def test_what_is_not_clear_is_refused(muster, rest, words, why):
    code, _, err = muster("run", "list", *words)

    assert (code, why in err) == (1, True)
    assert rest.asked(OF_ALL) == rest.asked(OF_ONE) == []


def test_the_next_runs_of_a_job_are_listed_or_why_there_are_none(muster, rest):
    assert muster("job", "next-runs", "nightly", "--top", "1")[1].splitlines() == [
        "time", "2031-01-01T03:00:00Z",
    ]  # fmt: skip
    assert "muster job show nightly says why" in muster("job", "next-runs", "nightly")[1]
    assert rest.asked(f"{JOB}/nextRuns") == [{"$top": "1"}, {"$top": "10"}]
