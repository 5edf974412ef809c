"""Words of the API that people read and type otherwise."""

import json

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, RUN, a_run, a_summary, a_target, listed

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
