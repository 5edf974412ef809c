"""`muster job plan`, and starts and queries that name their targets."""

import json

import pytest

from muster.cli import run_origin
from tests.unit.cli.fake_rest import ACCOUNT, JOB, RUN_ID, a_run, listed

PLAN_ID = "7c1e0f5a-93c4-4f0e-8a2b-5d6b7c8d9e10"
STEP = {
    "stepId": 1, "stepName": "main", "targetGroup": "all", "count": 3,
    "waves": [{"wave": 1, "count": 1}, {"wave": 2, "count": 2}],
    "servers": [
        {"serverName": "eu1", "count": 2, "connections": 9, "disabled": False},
        {"serverName": "us1", "count": 1, "connections": None, "disabled": False},
    ],
    "targets": [
        {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "a", "wave": 1},
        {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "b", "wave": 2},
        {"type": "SqlDatabase", "serverName": "us1", "databaseName": "c", "wave": 2},
    ],
    "leftOutCount": 1,
    "leftOut": [{"serverName": "eu1", "databaseName": "old", "reason": "Excluded", "excludedBy": "SqlDatabase eu1/old"}],
    "missingCount": 0, "missing": [], "unreachableCount": 0, "unreachable": [], "truncated": False,
    "missingCredentials": [{"serverName": "us1", "count": 1}], "outsideTransaction": ["vacuum"],
    "earlierAttempts": {"count": 4, "averageSeconds": 1.5}, "shortestSeconds": 3.0, "maxParallelism": None,
}  # fmt: skip
PLAN = {
    "name": PLAN_ID,
    "properties": {
        "jobVersion": 2, "expiresAt": "2031-01-04T00:00:00.5Z", "count": 3, "shortestSeconds": 3.0, "steps": [STEP],
    },
}  # fmt: skip
SHOWN = f"""\
step  name  server  targets  connections
1     main  eu1     2        9
1     main  us1     1        unknown
step 1 main: 3 targets in waves of 1, 2, at least 3.0 s: 4 earlier attempts took 1.5 s on average
  1 left out: eu1/old (Excluded by SqlDatabase eu1/old)
  no credential for 1 target on us1
  outside of a transaction: vacuum
version 2 of the job; nothing was started
start exactly this until 2031-01-04T00:00:00Z: muster job start nightly --plan {PLAN_ID}
"""


def test_a_plan_is_shown_by_step_and_server(muster, rest):
    rest.on("POST", f"{JOB}/plan", PLAN)

    code, out, _ = muster("job", "plan", "nightly")

    assert code == 0
    assert out.split() == SHOWN.split()


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ({}, None),
        ({"serverExists": False}, "the output's server eu9 is not in the account's directory"),
        ({"disabled": True}, "the output's server eu9 is disabled"),
        ({"missingCredentialCount": 2}, "no credential for the output of 2 targets"),
    ],
)
def test_a_plan_shows_the_output_and_what_it_lacks(muster, rest, more, warning):
    place = {
        "serverName": "eu9",
        "databaseName": "fleet",
        "schemaName": "dbo",
        "tableName": "sizes",
    }
    output = {**place, "serverExists": True, "disabled": False, "missingCredentialCount": 0, **more}
    steps = [{**STEP, "output": output}]
    rest.on("POST", f"{JOB}/plan", {**PLAN, "properties": {**PLAN["properties"], "steps": steps}})

    _, out, _ = muster("job", "plan", "nightly")

    assert "output: dbo.sizes in fleet on eu9" in out
    assert ("the output's" in out or "for the output" in out) == (warning is not None)
    assert warning is None or warning in out


def test_a_command_that_is_shown_can_be_pasted_whatever_the_job_is_called(muster, rest):
    rest.on("POST", f"{ACCOUNT}/jobs/x;id $(id)/plan", PLAN)

    _, out, _ = muster("job", "plan", "x;id $(id)")

    assert f"muster job start 'x;id $(id)' --plan {PLAN_ID}" in out


def test_a_stored_plan_is_shown_with_each_target(muster, rest):
    rest.on("GET", f"{JOB}/plans/{PLAN_ID}", PLAN)

    _, out, _ = muster("job", "plan", "nightly", "--show", PLAN_ID, "--targets", "-o", "tsv")

    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[1:4] for row in rows[1:4]] == [
        ["1", "eu1", "a"],
        ["2", "eu1", "b"],
        ["2", "us1", "c"],
    ]
    assert rows[4][5:] == ["left out", "Excluded by SqlDatabase eu1/old"]


def test_a_plan_with_a_step_that_has_no_targets_can_not_be_started(muster, rest):
    error = {"code": "CredentialMissing", "message": "No credential."}
    step = {"stepId": 1, "stepName": "main", "outsideTransaction": [], "error": error}
    rest.on("POST", f"{JOB}/plan", {**PLAN, "properties": {**PLAN["properties"], "steps": [step]}})

    _, out, _ = muster("job", "plan", "nightly")

    assert "step 1 main: can't be planned: CredentialMissing: No credential." in out
    assert "--plan" not in out


def test_plans_are_listed_with_the_runs_that_were_started(muster, rest):
    made = {"createdAt": "2031-01-01T00:00:00.25Z", "createdBy": "anna"}
    started = PLAN["properties"] | {"jobExecutionId": RUN_ID}
    plans = (
        {**PLAN, "systemData": made},
        {"name": "p2", "properties": started, "systemData": made},
    )
    rest.on("GET", f"{JOB}/plans", listed(*plans))

    code, out, _ = muster("job", "plans", "nightly", "-o", "tsv")

    at, until = "2031-01-01T00:00:00Z", "2031-01-04T00:00:00Z"
    assert code == 0
    assert [line.split("\t") for line in out.splitlines()[1:]] == [
        [PLAN_ID, "2", at, "anna", "3", until, ""],
        ["p2", "2", at, "anna", "3", until, RUN_ID],
    ]


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ((), None),
        (("--plan", PLAN_ID), {"planId": PLAN_ID}),
        (
            ("--target", "eu1/a", "--target", "eu1/b/app", "--limit", "1"),
            {
                "targets": [
                    {"serverName": "eu1", "databaseName": "a"},
                    {"serverName": "eu1", "databaseName": "b", "schemaName": "app"},
                ],
                "limit": 1,
            },
        ),
        (("--server", "eu1"), {"targets": [{"serverName": "eu1"}]}),
        (
            ("--server", "eu1", "--database", "a", "--set", "retryAttempts=0"),
            {
                "targets": [{"serverName": "eu1", "databaseName": "a"}],
                "overrides": {"retryAttempts": 0},
            },
        ),
    ],
)
def test_what_a_start_names_is_sent(muster, rest, words, body):
    rest.on("POST", f"{JOB}/start", a_run())

    code, out, err = muster("job", "start", "nightly", *words)

    assert (code, err) == (0, "")
    assert RUN_ID in out
    assert rest.sent("POST", f"{JOB}/start") == [body]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("job", "start", "nightly", "--database", "a"), "--database needs --server"),
        (("job", "start", "nightly", "--target", "a"), "'a' is no target: expected SERVER/DATABASE"),
        (("job", "start", "nightly", "--plan", PLAN_ID, "--limit", "1"), "--plan is started as it is"),
        (("job", "start", "nightly", "--set", "retryAttempts"), "is no OPTION=VALUE"),
        (("exec", "-c", "select 1"), "name the targets by --group, or by --target or --server"),
        (("exec", "-g", "g", "--server", "eu1", "-c", "select 1"), "name the targets by --group"),
        (("exec", "--server", "eu1", "-c", "delete from t", "--write"), "is not known beforehand"),
        (
            ("exec", "--target", "eu1/a", "-c", "x", "--write", "--yes", "--expect-targets", "2"),
            "2 targets were expected, the command names 1",
        ),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_refused_before_anything_is_sent(muster, rest, words, message):
    code, _, err = muster(*words)

    assert code == 1
    assert message in err
    assert not any(each.method == "POST" for each in rest.requests)


def test_exec_needs_no_group(muster, rest):
    rest.on("POST", f"{ACCOUNT}/queries", a_run(job="adhoc"))

    muster("exec", "--target", "eu1/a", "--limit", "1", "-c", "select 1")

    assert rest.sent("POST", f"{ACCOUNT}/queries") == [
        {
            "sql": "select 1",
            "readOnly": True,
            "timeoutSeconds": 60,
            "targets": [{"serverName": "eu1", "databaseName": "a"}],
            "limit": 1,
        }
    ]
    assert json.dumps(rest.sent("POST", f"{ACCOUNT}/queries")).count("targetGroup") == 0


def test_a_run_shows_what_it_has_in_place_of_its_steps():
    summary = {"origin": "caller", "actor": "anna", "jobVersion": 2, "limit": 1}

    lines = run_origin.begun(summary | {"overrides": {"retryAttempts": 0}})

    assert lines == ["started by anna, version 2", "for this run: limit 1, retryAttempts 0"]
