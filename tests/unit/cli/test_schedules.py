"""When a job runs: what has to be said, what is accepted, and what is printed about the first run."""

import argparse

import pytest

from muster.cli import typed
from tests.unit.cli.fake_rest import ACCOUNT, JOB, listed

CREATE = ("job", "create", "nightly", "-g", "prod", "-c", "select 1")


@pytest.fixture
def hourly(rest):
    """A job that the API shows with an hourly schedule and a run an hour from now."""
    schedule = {"type": "Recurring", "interval": "PT1H", "enabled": True}
    shown = {"name": "nightly", "properties": {"version": 1, "schedule": schedule}}
    said = {"stepId": 1, "targetGroup": f"{ACCOUNT}/targetGroups/prod", "action": {"value": "x"}}
    step = {"name": "main", "properties": said}
    rest.on("PUT", JOB, shown)
    rest.on("GET", JOB, shown)
    rest.on("GET", f"{JOB}/steps", listed(step))
    rest.on("GET", f"{JOB}/nextRuns", listed({"time": "2031-01-01T03:00:00Z"}))
    return rest


def test_an_interval_without_a_start_is_refused_before_anything_is_written(muster, hourly):
    code, _, err = muster(*CREATE, "--every", "PT1H")

    assert code == 1
    assert "runs at once on all targets" in err and "--now" in err and "--start TIME" in err
    assert hourly.sent("PUT", JOB) == []


@pytest.mark.parametrize("words", [["--cron", "0 3 * * *"], ["--at", "2031-01-01T00:00Z"], []])
def test_now_is_only_for_an_interval(muster, hourly, words):
    assert muster(*CREATE, *words, "--now")[0] == 1
    assert hourly.sent("PUT", JOB) == []


def test_now_and_a_start_exclude_each_other(muster, hourly):
    assert muster(*CREATE, "--every", "1h", "--now", "--start", "2031-01-01T00:00Z")[0] == 1


def test_a_disabled_interval_needs_no_start(muster, hourly):
    assert muster(*CREATE, "--every", "1h", "--disabled")[0] == 0


def test_a_job_that_starts_at_once_says_so_and_when_it_runs_next(muster, hourly):
    out = muster(*CREATE, "--every", "1h", "--now")[1].splitlines()

    assert out[2:4] == ["first run: now", "next run: 2031-01-01T03:00:00Z"]
    assert "startTime" not in hourly.sent("PUT", JOB)[-1]["properties"]["schedule"]


def test_a_new_job_with_a_start_prints_its_first_run(muster, hourly):
    out = muster(*CREATE, "--every", "1h", "--start", "2031-01-01T03:00Z")[1].splitlines()

    assert out[2] == "first run: 2031-01-01T03:00:00Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h", "PT1H"), ("15m", "PT15M"), ("15 min", "PT15M"), ("1 hour", "PT1H"), ("90 minutes", "PT90M"),
        ("1h30m", "PT1H30M"), ("1d", "P1D"), ("2w", "P2W"), ("1mo", "P1M"), ("1y", "P1Y"), ("1D12H", "P1DT12H"),
        ("PT1H", "PT1H"), ("pt1h30m", "PT1H30M"), ("P1M", "P1M"), ("0m", "PT0M"), ("60s", "PT60S"),
    ],
)  # fmt: skip
def test_an_interval_is_taken_in_every_usual_form(text, expected):
    assert typed.interval(text) == expected


@pytest.mark.parametrize("text", ["", "60", "hourly", "1 fortnight", "1h 3", "-1h", "P", "PT"])
def test_what_is_no_interval_is_refused_with_examples(text):
    with pytest.raises(argparse.ArgumentTypeError, match="such as 15m, 1h"):
        typed.interval(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400), ("1h30m", 5400), ("5 min", 300), ("PT15M", 900)],
)  # fmt: skip
def test_a_duration_is_taken_in_every_usual_form(text, expected):
    assert typed.duration(text) == expected


@pytest.mark.parametrize("text", ["soon", "1mo", "P1M", "1.5h", ""])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no duration"):
        typed.duration(text)


@pytest.mark.parametrize("typed_as", ["queueone", "QueueOne", "queue-one", "queue_one"])
def test_a_fixed_word_is_taken_in_any_case(muster, hourly, typed_as):
    assert muster(*CREATE, "--overlap", typed_as)[0] == 0
    assert hourly.sent("PUT", JOB)[-1]["properties"]["schedule"]["overlap"] == "queueOne"


def test_a_wrong_fixed_word_gets_the_nearest_one(muster, hourly):
    _, _, err = muster(*CREATE, "--overlap", "queueTwo")

    assert "choose from skipTarget" in err and "did you mean queueOne?" in err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["jbo", "list"], "there is no command 'jbo'; did you mean job?"),
        (["jobs", "list"], "did you mean job?"),
        (["job", "lst"], "'muster job' has no 'lst'; did you mean list?"),
        (["job", "run", "x"], "did you mean start?"),
        (["job", "rm", "x"], "did you mean delete?"),
        (["server", "register", "x"], "did you mean add?"),
        (["run", "frobnicate"], "there are: list, show, watch"),
    ],
)
def test_a_wrong_noun_or_verb_gets_the_nearest_one(muster, words, near):
    code, _, err = muster(*words)

    assert code == 1
    assert near in err and err.count("\n") == 1


def test_sql_that_the_grammar_refuses_is_written_with_a_warning(muster, hourly):
    code, out, err = muster("job", "create", "nightly", "-g", "prod", "-c", "select 1;\n selec 2")

    assert code == 0 and "nightly" in out and len(hourly.sent("PUT", JOB)) == 1
    assert err.startswith('warning: Line 2, column 2: syntax error at or near "selec". ')
    assert err.count("\n") == 1


@pytest.mark.parametrize("sql", ["select 1; select 2", "select $(job_execution_id)"])
def test_sql_that_the_grammar_takes_gets_no_warning(muster, hourly, sql):
    assert muster("job", "create", "nightly", "-g", "prod", "-c", sql)[2] == ""
