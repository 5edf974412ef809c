"""`muster webhook …`, `run events`, `account events` and `--auto-disable`."""

import json

import httpx
import pytest
import yaml

from tests.unit.cli.fake_rest import ACCOUNT, JOB, RUN, RUN_ID, a_run, listed, refusal

HOOK = f"{ACCOUNT}/webhooks/ops"
URL = "https://alerts.example.org/x"
SHOWN = {
    "name": "ops",
    "properties": {
        "url": URL, "events": ["failed"], "jobs": [], "enabled": True, "maxAttempts": 8,
        "pending": 0, "delivered": 2, "failed": 1,
    },
}  # fmt: skip
EVENT_ID = "6f6f2a0e-55f1-4e0e-9a57-2b9f0f6b3c11"


def a_delivery(**more):
    return {
        "eventId": EVENT_ID, "number": 1, "kind": "runEnded", "jobName": "nightly", "status": "Failed",
        "attempts": 8, "eventTime": "2031-01-01T00:00:00Z", "lastStatusCode": 500,
        "lastError": "the receiver answered 500",
    } | more  # fmt: skip


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text("a secret of at least 16 characters\n")
    return str(file)


def test_a_webhook_is_created(muster, rest, secret):
    rest.on("PUT", HOOK, SHOWN)

    code, out, err = muster(
        "webhook", "create", "ops", "--to", URL, "--event", "failed", "--event", "auto-disabled",
        "--job", "nightly", "--secret-file", secret, "--max-attempts", "3",
    )  # fmt: skip

    assert (code, err) == (0, "")
    assert rest.sent("PUT", HOOK) == [
        {
            "properties": {
                "url": URL, "events": ["failed", "autoDisabled"], "jobs": ["nightly"], "maxAttempts": 3,
                "secret": "a secret of at least 16 characters",
            }
        }
    ]  # fmt: skip
    assert "ops" in out and URL in out


def test_an_update_changes_only_what_is_named(muster, rest):
    rest.on("GET", HOOK, SHOWN)
    rest.on("PUT", HOOK, SHOWN)

    assert muster("webhook", "update", "ops", "--disable")[0] == 0

    (sent,) = rest.sent("PUT", HOOK)
    assert sent["properties"] == SHOWN["properties"] | {"enabled": False}


def test_deliveries_and_a_replay(muster, rest):
    rest.on("GET", f"{HOOK}/deliveries", {"value": [a_delivery()]})
    rest.on("POST", f"{HOOK}/replay", {"replayed": 1})

    code, out, _ = muster("webhook", "deliveries", "ops", "--status", "failed", "-o", "tsv")
    assert code == 0 and EVENT_ID in out and "the receiver answered 500" in out
    assert rest.asked(f"{HOOK}/deliveries") == [{"$top": "20", "status": "Failed"}]
    assert muster("webhook", "replay", "ops", "--event", EVENT_ID)[:2] == (
        0,
        "replayed\n       1\n",
    )
    assert rest.sent("POST", f"{HOOK}/replay") == [{"eventIds": [EVENT_ID]}]


@pytest.mark.parametrize(
    ("status", "code"), [("Delivered", 0), ("Pending", 1)], ids=["accepted", "refused"]
)
def test_a_test_waits_for_the_answer(muster, rest, status, code):
    sent = a_delivery(kind="test", status=status, attempts=1, eventId="new")
    waiting = sent | {"attempts": 0, "status": "Pending"}
    old = a_delivery(kind="test", eventId="old")
    rest.on(
        "GET", f"{HOOK}/deliveries",
        {"value": [old]}, {"value": [waiting, old]}, {"value": [sent, old]},
    )  # fmt: skip
    rest.on("POST", f"{HOOK}/test", {"testId": "t"})

    assert muster("webhook", "test", "ops")[0] == code


def stream(*events, end=False):
    parts = [
        f"id: {each['number']}\nevent: {each['kind']}\ndata: {json.dumps(each)}\n\n"
        for each in events
    ]
    text = "retry: 2000\n\n" + "".join(parts) + ("event: end\ndata: {}\n\n" if end else "")
    return httpx.Response(200, content=text.encode())


def an_event(number, kind="runStarted", **data):
    return {
        "number": number, "kind": kind, "time": "2031-01-01T00:00:00Z",
        "data": {"jobName": "nightly"} | data,
    }  # fmt: skip


FAILURE = {"serverName": "eu1", "databaseName": "t1", "message": "division by zero"}


def test_events_of_a_run_are_followed_over_a_lost_connection(muster, rest):
    rest.on("GET", f"{ACCOUNT}/executions", listed(a_run()))
    rest.on(
        "GET", f"{RUN}/events",
        stream(an_event(4)),
        httpx.ReadError("lost"),
        stream(
            an_event(9, "targetsEnded", stepId=1, counts={"Failed": 1}, failures=[FAILURE]),
            end=True,
        ),
    )  # fmt: skip

    code, out, _ = muster("run", "events", RUN_ID, "--follow")

    assert code == 0
    first, second = out.splitlines()
    assert "runStarted" in first and "targetsEnded" in second
    assert [int(each.split()[0]) for each in (first, second)] == [4, 9], "--after takes them"
    assert "step 1: 1 Failed; eu1/t1: division by zero" in out
    assert rest.asked(f"{RUN}/events") == [{}, {"after": "4"}, {"after": "4"}]


def test_events_until_now_are_asked_once(muster, rest):
    rest.on("GET", f"{ACCOUNT}/executions", listed(a_run()))
    rest.on("GET", f"{RUN}/events", stream(an_event(4)))

    code, out, _ = muster("run", "events", RUN_ID, "--after", "3", "-o", "json")

    assert code == 0 and json.loads(out)["number"] == 4
    assert rest.asked(f"{RUN}/events") == [{"after": "3", "follow": "false"}]


def test_events_have_every_form_one_after_another(muster, rest):
    event = an_event(4)
    rest.on("GET", f"{RUN}/events", stream(event))

    def printed(*words):
        rest.on("GET", f"{ACCOUNT}/executions", listed(a_run()))
        return muster("run", "events", RUN_ID, "--after", "3", *words)[1]

    header, row = printed("-o", "csv").splitlines()
    assert header == "number,time,kind,job,text"
    assert row.startswith("4,2031-01-01T00:00:00Z,runStarted,nightly,")
    assert list(yaml.safe_load_all(printed("-o", "yaml"))) == [event]
    assert json.loads(printed("-o", "jsonc")) == event
    assert printed("-o", "tsv", "--query", "[number, kind]") == "4\trunStarted\n"
    assert printed("--query", "data.jobName") == "nightly\n"


def test_events_of_an_account(muster, rest):
    rest.on("GET", f"{ACCOUNT}/events", stream(an_event(1)))

    assert muster("account", "events", "-o", "tsv")[0] == 0
    assert rest.asked(f"{ACCOUNT}/events") == [{"after": "0", "follow": "false"}]


def test_a_refused_stream_is_one_line(muster, rest):
    rest.on("GET", f"{ACCOUNT}/events", refusal(429, "TooManyEventStreams", "Too many."))

    code, _, err = muster("account", "events")

    assert (code, err) == (1, "muster: TooManyEventStreams: Too many.\n")


@pytest.mark.parametrize(
    ("given", "policy"),
    [("30/7", {"failures": 30, "days": 7}), ("3/1d", {"failures": 3, "days": 1}), ("off", {"failures": 0})],
)  # fmt: skip
def test_a_policy_of_auto_disable(muster, rest, given, policy):
    job = {"id": JOB, "name": "nightly", "properties": {"schedule": {}, "autoDisable": policy}}
    rest.on("PUT", JOB, job)
    rest.on("PUT", f"{JOB}/steps/main", {})
    rest.on("GET", JOB, job)
    rest.on("GET", f"{JOB}/steps", listed())
    rest.on("GET", f"{JOB}/nextRuns", listed())

    code, _, err = muster(
        "job", "create", "nightly", "-g", "prod", "-c", "select 1", "--auto-disable", given
    )

    assert (code, err) == (0, "")
    assert rest.sent("PUT", JOB)[0]["properties"]["autoDisable"] == policy
    assert muster("job", "create", "x", "-g", "g", "-c", "select 1", "--auto-disable", "x")[0] == 1


@pytest.mark.parametrize(("failures", "words"), [(1, "1 time"), (2, "2 times")])
def test_a_job_that_fails_says_since_when(muster, rest, failures, words):
    health = {"failuresInARow": failures, "since": "2031-01-01T00:00:00.123456Z"}
    rest.on(
        "GET", JOB, {"id": JOB, "name": "nightly", "properties": {"schedule": {}, "health": health}}
    )
    rest.on("GET", f"{JOB}/steps", listed())
    rest.on("GET", f"{JOB}/nextRuns", listed())

    line = f"failed {words} in a row since 2031-01-01T00:00:00Z"
    assert line in muster("job", "show", "nightly")[1].splitlines()


def test_a_disabled_job_says_why(muster, rest):
    reason = "The schedule was disabled after 30 runs in a row failed."
    health = {"failuresInARow": 30, "since": "2031-01-01T00:00:00Z", "disabledReason": reason}
    job = {"id": JOB, "name": "nightly", "properties": {"schedule": {}, "health": health}}
    rest.on("GET", JOB, job)
    rest.on("GET", f"{JOB}/steps", listed())
    rest.on("GET", f"{JOB}/nextRuns", listed())

    assert reason in muster("job", "show", "nightly")[1]
