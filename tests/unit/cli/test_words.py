"""Words of the API that people read and type otherwise."""

import argparse
import json
import re
from time import tzset

import pytest

from muster.cli import output
from muster.cli.main import parser
from tests.unit.cli.fake_rest import (
    ACCOUNT,
    RUN,
    a_run,
    a_summary,
    a_target,
    listed,
    refusal,
)

WIRE = "WaitingForChildJobExecutions"


@pytest.fixture
def run_in_progress(rest):
    rest.on("GET", f"{ACCOUNT}/executions", listed(a_run(lifecycle=WIRE)))
    rest.on("GET", f"{ACCOUNT}/jobs/nightly/executions", listed(a_run(lifecycle=WIRE)))
    rest.on("GET", f"{RUN}/summary", a_summary(WIRE, InProgress=1))
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07", "InProgress")))
    return rest


@pytest.mark.parametrize(
    "words",
    [["list"], ["show", "nightly"], ["show", "nightly", "--targets"]],
)
def test_people_read_that_a_run_is_running(muster, run_in_progress, words):
    code, out, _ = muster("run", *words)

    assert code == 0
    assert "running" in out and WIRE not in out and "InProgress" not in out


def test_scripts_get_the_words_of_the_api(muster, run_in_progress):
    assert muster("run", "list", "-o", "tsv")[1].splitlines()[1].split("\t")[2] == WIRE
    assert json.loads(muster("run", "show", "nightly", "-o", "json")[1])["lifecycle"] == WIRE


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("failed", "Failed"), ("FAILED,timed-out", "Failed,TimedOut"), ("running", "InProgress"),
        ("cancelled", "Canceled"), ("canceled", "Canceled"), ("waitingforretry", "WaitingForRetry"),
        ("retrying", "WaitingForRetry"), ("timeout", "TimedOut"),
    ],
)  # fmt: skip
def test_a_lifecycle_is_typed_in_any_case(muster, run_in_progress, typed, sent):
    assert muster("run", "show", "nightly", "--lifecycle", typed)[0] == 0
    assert run_in_progress.asked(f"{RUN}/targets") == [{"lifecycle": sent}]


def test_a_lifecycle_that_is_none_gets_the_nearest(muster, run_in_progress):
    code, _, err = muster("run", "show", "nightly", "--lifecycle", "faild")

    assert code == 1 and "did you mean Failed?" in err


def test_times_have_the_time_here_beside_them_for_people_alone(muster, rest, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tzset()
    times = {"createTime": "2031-01-01T10:00:00.5Z", "startTime": "2031-01-01T20:00:00Z"}
    later = a_run(createTime="2031-01-01T20:00:00Z")
    rest.on("GET", f"{ACCOUNT}/executions", listed(a_run(**times), later))
    rest.on("GET", f"{ACCOUNT}/jobs/nightly/executions", listed(a_run(**times)))
    rest.on("GET", f"{RUN}/summary", a_summary(**times))

    people, tsv = muster("run", "list")[1], muster("run", "list", "-o", "tsv")[1]

    assert "2031-01-01T10:00:00Z (15:30)" in people
    assert "2031-01-01T20:00:00Z (01-02 01:30)" in people
    assert "\t2031-01-01T10:00:00Z\t2031-01-01T20:00:00Z" in tsv and "(" not in tsv
    assert "created 2031-01-01T10:00:00Z (15:30)" in muster("run", "show", "nightly")[1]


def test_times_here_are_left_out_where_ids_need_the_room(terminal, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tzset()
    table = output.Table(("id", "at"), [["i" * 60, output.moment("2031-01-01T10:00:00Z")]])
    options = argparse.Namespace(output="table", query=None)

    shown = terminal()["stdout"]
    output.show(options, {}, table)
    monkeypatch.setenv("COLUMNS", "85")
    output.show(options, {}, table)

    wide, narrow = shown.getvalue().splitlines()[1::2]
    assert wide.endswith("10:00:00Z (15:30)") and narrow.endswith("  2031-01-01T10:00:00Z")


def leaves(made=None):
    below = (made or parser()).commands()
    yield from [leaf for child in below.values() for leaf in leaves(child)] if below else [made]


CHOICES = [
    pytest.param(made, action, id=f"{made.prog} {'/'.join(action.option_strings) or action.dest}")
    for made in leaves()
    for action in made._actions
    if action.choices
]


@pytest.mark.parametrize(("made", "action"), CHOICES)
def test_fixed_words_are_accepted_in_any_case(made, action):
    assert [made._get_value(action, str(word).upper()) for word in action.choices] == list(
        action.choices
    )


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("job", "create", "x", "--grop", "all"), "there is no option --grop; did you mean --group"),
        (("run", "list", "--lifecyle=failed"), "there is no option --lifecyle"),
        (("job", "start", "x", "--weit"), "there is no option --weit; did you mean --wait"),
        (("up", "--lisen", "x:1"), "there is no option --lisen; did you mean --listen"),
    ],
)  # fmt: skip
def test_a_wrong_option_gets_the_nearest_first_of_all(muster, rest, words, near):
    code, _, err = muster(*words)

    assert code == 1 and near in err
    assert f"see muster {' '.join(words[:2]) if words[0] != 'up' else 'up'} --help" in err


def test_a_script_that_looks_like_an_option_is_none(muster, rest):
    rest.on("GET", f"{ACCOUNT}/targetGroups/g", refusal(403, "AuthorizationFailed", "No."))

    _, _, err = muster("exec", "-g", "g", "-c", "--comment with words\nselect 1")

    assert "option" not in err


SECONDS = {"90": 90, "90s": 90, "15m": 900, "2h": 7200, "1d": 86400, "1h30m": 5400, "PT15M": 900}
DURATIONS = [
    pytest.param(made, action, id=f"{made.prog} {action.option_strings[0]}")
    for made in leaves()
    for action in made._actions
    if re.search(
        "timeout|interval|-maximum|pause-between|backoff|duration", str(action.option_strings)
    )
]


@pytest.mark.parametrize(("made", "action"), DURATIONS)
def test_every_duration_is_typed_in_any_of_its_forms(made, action):
    def seconds(text):
        read = made._get_value(action, text)
        return read[0] if isinstance(read, list) else read

    assert {text: seconds(text) for text in SECONDS} == SECONDS
