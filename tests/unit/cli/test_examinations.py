"""`group doctor`, `credential test` and `target history`: all pages, what to run, and the exit codes."""

import json

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, JOB, RUN_ID, listed

DOCTOR = f"{ACCOUNT}/targetGroups/prod/doctor"
TEST = f"{ACCOUNT}/credentials/login/test"
GOOD = {
    "serverName": "eu1", "databaseName": "a", "credential": "fleet", "username": "u", "ok": True,
    "tls": {"mode": "disable"}, "steps": ["nightly/main"],
}  # fmt: skip
BAD = {
    "serverName": "eu1", "databaseName": "b", "credential": "fleet", "username": "u", "ok": False,
    "check": "database", "code": "ConnectNotGranted", "message": "No.", "advice": "Run it.",
    "grants": ['GRANT CONNECT ON DATABASE "b" TO "u";'],
}  # fmt: skip


def test_the_doctor_asks_for_all_pages_and_shows_what_to_run(muster, rest):
    rest.on("POST", DOCTOR, {"value": [GOOD], "next": "more", "count": 2}, {"value": [BAD]})

    code, out, _ = muster("group", "doctor", "prod")

    assert code == 2
    assert rest.sent("POST", DOCTOR) == [{}, {"after": "more"}]
    assert out.splitlines() == [
        "server  database  credential  user  tls   check     code               message",
        "eu1     b         fleet       u           database  ConnectNotGranted  No.",
        "eu1     a         fleet       u     none",
        "2 targets, 1 with a problem.",
        "-- eu1/b",
        'GRANT CONNECT ON DATABASE "b" TO "u";',
        "ConnectNotGranted: Run it.",
    ]


@pytest.mark.parametrize(("rows", "expected"), [([GOOD], 0), ([BAD], 3), ([GOOD, BAD], 2), ([], 0)])
def test_a_login_is_tried_where_it_is_named(muster, rest, rows, expected):
    rest.on("POST", TEST, {"value": rows})

    code, out, _ = muster(
        "credential", "test", "login", "--server", "eu1", "--database", "a", "-o", "json"
    )

    assert rest.sent("POST", TEST) == [{"servers": ["eu1"], "databaseName": "a"}]
    assert (code, json.loads(out)) == (expected, {"value": rows})


def test_the_history_of_a_target_ends_after_so_many(muster, rest):
    path = f"{ACCOUNT}/targets/eu1/my%20shop"
    properties = {
        "jobExecutionId": RUN_ID, "stepName": "main", "lifecycle": "Failed", "endReason": "TimedOut",
        "currentAttempts": 2, "startTime": "2031-01-01T00:00:00.5Z",
        "target": {"serverName": "eu1", "databaseName": "my shop"},
    }  # fmt: skip
    item = {"id": f"{JOB}/executions/{RUN_ID}/steps/main/targets/t", "properties": properties}
    rest.on("GET", path.replace("%20", " "), listed(item, item))

    code, out, _ = muster("target", "history", "eu1/my shop", "--top", "1", "--schema", "s")

    assert code == 0
    assert rest.asked(path.replace("%20", " ")) == [{"schema": "s", "$top": "1"}]
    assert out.splitlines() == [
        "run                                   job      step  lifecycle  reason    attempts  start                 end",
        f"{RUN_ID}  nightly  main  Failed     TimedOut         2  2031-01-01T00:00:00Z",
    ]
    assert muster("target", "history", "eu1")[0] == 1
