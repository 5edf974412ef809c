"""`muster run …`: watching, waiting, asking why, cancelling."""

import json

import pytest

from muster.cli import main as cli
from tests.unit.cli.fake_rest import (
    ACCOUNT, JOB, RUN, RUN_ID, a_cause, a_run, a_summary, a_target, listed, refusal,
)  # fmt: skip

SUMMARY = f"{RUN}/summary"
GOING = a_summary("WaitingForChildJobExecutions", Succeeded=1, InProgress=1, WaitingForRetry=1)


@pytest.fixture(autouse=True)
def newest(rest):
    rest.on("GET", f"{JOB}/executions", listed(a_run()))


def test_runs_are_listed_newest_first(muster, rest):
    ended = {
        "startTime": "2031-01-01T00:00:01Z",
        "endTime": "2031-01-01T00:01:05Z",
        "targets": {"total": 60, "done": 60, "succeeded": 59, "failed": 1},
        "rowsAffected": 7,
        "origin": "rerun",
        "rerunOf": RUN_ID,
        "actor": "ann",
    }
    run = a_run(lifecycle="Failed", lastMessage="No.", **ended)
    rest.on("GET", f"{ACCOUNT}/executions", listed(run))

    code, out, _ = muster("run", "list", "--active", "--top", "3", "-o", "tsv")

    assert code == 0
    assert out.splitlines() == [
        "job\trun\tlifecycle\ttargets\trows\tcreated\tstarted\tended\tduration\torigin\tattempt\tmessage",
        f"nightly\t{RUN_ID}\tFailed\t59 of 60\t7\t2031-01-01T00:00:00Z\t2031-01-01T00:00:01Z\t2031-01-01T00:01:05Z"
        "\t1 min 04 s\trerun of 3f2a1c9e by ann\t\tNo.",
    ]
    assert rest.asked(f"{ACCOUNT}/executions") == [{"$top": "3", "isActive": "true"}]


def test_runs_of_one_job_are_those_of_the_job(muster, rest):
    document = json.loads(muster("run", "list", "nightly", "-o", "json")[1])

    assert document == {"value": [a_run()]}


def test_watch_writes_a_line_for_each_change_and_exits_as_the_run_ended(muster, rest):
    rest.on(
        "GET",
        SUMMARY,
        a_summary("Created"),
        GOING,
        GOING,
        a_summary("Failed", Succeeded=2, Failed=1),
    )

    code, out, err = muster("run", "watch", "nightly")

    assert code == 2
    assert out.splitlines() == [
        "nightly 3f2a1c9e Created 0/0",
        "nightly 3f2a1c9e running 1/3 Succeeded=1 running=1 WaitingForRetry=1",
        "nightly 3f2a1c9e Failed 3/3 Succeeded=2 Failed=1",
        "nightly 3f2a1c9e Failed. 2 of 3 targets succeeded, 1 failed.",
        f"muster run errors {RUN_ID} lists the causes.",
        f"muster run rerun {RUN_ID} --failed runs the job again on those targets.",
    ]
    assert err == ""


def test_watch_asks_only_for_what_changed(muster, rest):
    rest.on("GET", SUMMARY, GOING, GOING, GOING, a_summary(Succeeded=3))

    muster("run", "watch", "nightly")

    known = [
        each.headers.get("if-none-match") for each in rest.requests if each.url.path == SUMMARY
    ]
    assert known[0] is None and len(set(known[1:])) == 1 and known[1]


def test_watch_in_a_terminal_draws_the_block(muster, rest, terminal):
    rest.on("GET", SUMMARY, GOING, a_summary(Succeeded=3, lastMessage="3 of 3 targets succeeded."))
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_02", "InProgress")))
    rest.on("GET", f"{RUN}/errors", listed(a_cause("55P03", 1, "lock timeout", retrying=1)))
    out = terminal()["stdout"]

    assert cli.main(["run", "watch", "nightly"]) == 0

    told = out.getvalue()
    assert "running  fleet-1/tenant_02\n" in told
    assert "retrying  1 × 55P03 lock timeout" in told
    assert told.endswith("nightly 3f2a1c9e Succeeded. 3 of 3 targets succeeded.\n")
    assert {"lifecycle": "InProgress", "$top": "4"} in rest.asked(f"{RUN}/targets")


def test_watch_for_scripts_is_one_document_and_the_lines_go_to_stderr(muster, rest):
    over = a_summary(Succeeded=3)
    rest.on("GET", SUMMARY, GOING, over)

    code, out, err = muster("run", "watch", "nightly", "-o", "json")

    assert (code, json.loads(out)) == (0, over)
    assert len(err.splitlines()) == 2


def test_the_pace_is_drawn_anew_while_nothing_else_changes(muster, rest, terminal):
    """Its tag does not count the pace; what runs and failed is asked for only when something moved."""
    out = terminal()["stdout"]
    going = [a_summary("InProgress", Succeeded=1, InProgress=2, etaSeconds=left) for left in (9, 4)]
    slow = a_summary("InProgress", Succeeded=1, InProgress=2)
    rest.on("GET", SUMMARY, *going, slow, a_summary(Succeeded=3))
    rest.on("GET", f"{RUN}/targets", listed())

    muster("run", "watch", "nightly")

    drawn = out.getvalue().split("\r")
    assert ["ETA 9 s" in drawn[0], "ETA 4 s" in drawn[1], "ETA" in drawn[2]] == [True, True, False]
    assert len(rest.asked(f"{RUN}/targets")) == 1


def test_wait_is_silent_until_the_end(muster, rest):
    rest.on("GET", SUMMARY, GOING, a_summary("Canceled", Canceled=3))

    assert muster("run", "wait", "nightly") == (
        4, "nightly 3f2a1c9e Canceled. 0 of 3 targets succeeded, 3 cancelled.\n", "",
    )  # fmt: skip


def test_a_wait_that_lasts_too_long_leaves_the_run_alone(muster, rest, time):
    rest.on("GET", SUMMARY, GOING)

    code, out, err = muster("run", "wait", "nightly", "--timeout", "2m")

    assert (code, out) == (5, "")
    assert "has not finished after 120 s and continues" in err
    assert 120 <= sum(time.slept) < 130 and max(time.slept) <= 5
    assert not [each for each in rest.requests if each.method != "GET"]


@pytest.mark.parametrize("verb", ["watch", "wait"])
def test_ctrl_c_leaves_the_run_alone_and_says_so(muster, rest, monkeypatch, verb):
    from muster.cli import run_watch

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_watch, "sleep", interrupted)
    rest.on("GET", SUMMARY, GOING)

    code, _, err = muster("run", verb, "nightly")

    assert code == 130
    assert "The run continues." in err and f"muster run cancel {RUN_ID}" in err
    assert not [each for each in rest.requests if each.method != "GET"]


def test_a_halted_run_is_not_waited_for(muster, rest):
    halted = [{"reason": "Halted", "count": 40}]
    rest.on(
        "GET",
        SUMMARY,
        a_summary("WaitingForChildJobExecutions", Failed=1, Created=40, byReason=halted),
    )

    assert muster("run", "wait", "nightly")[0] == 8


def test_watching_outlives_a_restart_of_the_api(muster, rest):
    rest.on("GET", SUMMARY, GOING, refusal(503, "Away", "Soon."), a_summary(Succeeded=3))

    assert muster("run", "wait", "nightly")[0] == 0


def test_show_tells_the_steps(muster, rest):
    rest.on(
        "GET",
        SUMMARY,
        a_summary("Failed", Succeeded=2, Failed=1, TimedOut=1, lastMessage="Two failed."),
    )

    code, out, _ = muster("run", "show", "nightly")

    assert code == 0
    assert out.splitlines() == [
        f"nightly {RUN_ID}: Failed",
        "  created 2031-01-01T00:00:00Z",
        "  Two failed.",
        "  4/4 Succeeded=2 Failed=1 TimedOut=1",
        "",
        "step  name  lifecycle  done  total  failed  message",
        "   1  main  Failed        4      4       2",
    ]


def test_show_targets_are_filtered_by_the_api(muster, rest):
    rest.on(
        "GET",
        f"{RUN}/targets",
        listed(a_target("tenant_07", "Failed", endReason="StatementFailed")),
    )

    _, out, _ = muster(
        "run",
        "show",
        "nightly",
        "--lifecycle",
        "Failed,TimedOut",
        "--server",
        "fleet-1",
        "-o",
        "tsv",
    )

    assert out.splitlines()[1] == "main\tfleet-1\ttenant_07\t\tFailed\t1\t\t\tStatementFailed\t"
    assert rest.asked(f"{RUN}/targets") == [{"lifecycle": "Failed,TimedOut", "server": "fleet-1"}]


BLOCKED = {
    "attempt": 2, "lifecycle": "Failed", "endReason": "LockTimeout", "sqlstate": "55P03", "message": "lock timeout",
    "blockers": [{"pid": 4711, "application_name": "checkout", "state": "idle in transaction", "since": "2031-01-01T00:00:01.5Z"}],
}  # fmt: skip


def test_why_of_a_target_names_the_blocker(muster, rest):
    target = f"{RUN}/steps/main/targets/id-of-tenant_07"
    why = {
        "lifecycle": "WaitingForRetry",
        "waitReason": "Retry",
        "message": "Attempt 3 begins soon.",
        "since": "2031-01-01T00:00:02Z",
    }
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07", "WaitingForRetry")))
    rest.on("GET", f"{target}/why", why)
    rest.on("GET", f"{target}/attempts", listed({"name": "2", "properties": BLOCKED}))

    assert muster("run", "why", "nightly", "tenant_07")[1].splitlines() == [
        "fleet-1/tenant_07: WaitingForRetry (Retry) since 2031-01-01T00:00:02Z",
        "  Attempt 3 begins soon.",
        "  attempt 2: Failed",
        "  55P03: lock timeout",
        "  blocked by pid 4711 (checkout, idle in transaction since 2031-01-01T00:00:01Z)",
    ]
    assert json.loads(muster("run", "why", "nightly", "tenant_07", "-o", "json")[1]) == {
        **why,
        "attempt": BLOCKED,
    }
    row = muster("run", "why", "nightly", "tenant_07", "-o", "tsv")[1].splitlines()[1].split("\t")
    assert row[:3] == ["fleet-1/tenant_07", "WaitingForRetry", "Retry"] and "pid 4711" in row[-1]


def test_why_of_a_run_asks_at_one_target_for_each_reason(muster, rest):
    waiting = [a_target(f"tenant_0{n}", "Created", waitReason="ServerConnections") for n in (1, 2)]
    waiting.append(a_target("tenant_03", "WaitingForRetry", waitReason="Retry"))
    reasons = [{"reason": "ServerConnections", "count": 40}, {"reason": "Retry", "count": 1}]
    rest.on(
        "GET",
        SUMMARY,
        a_summary("WaitingForChildJobExecutions", Created=40, WaitingForRetry=1, byReason=reasons),
    )
    rest.on("GET", f"{RUN}/targets", listed(*waiting))
    rest.on(
        "GET",
        f"{RUN}/steps/main/targets/id-of-tenant_01/why",
        {"lifecycle": "Created", "message": "All 9 sessions are taken."},
    )
    rest.on(
        "GET",
        f"{RUN}/steps/main/targets/id-of-tenant_03/why",
        {"lifecycle": "WaitingForRetry", "message": "At noon."},
    )

    _, out, _ = muster("run", "why", "nightly", "-o", "tsv")

    assert out.splitlines() == [
        "reason\ttargets\texample\tmessage",
        "ServerConnections\t40\tfleet-1/tenant_01\tAll 9 sessions are taken.",
        "Retry\t1\tfleet-1/tenant_03\tAt noon.",
    ]


def test_why_of_a_run_that_found_no_targets_tells_its_reason(muster, rest):
    rest.on(
        "GET",
        SUMMARY,
        a_summary("Failed", endReason="TargetsUnresolved", lastMessage="A server is gone."),
    )

    assert muster("run", "why", "nightly")[1].splitlines() == [
        "nightly 3f2a1c9e: Failed, 0/0",
        "  run: TargetsUnresolved. A server is gone.",
    ]


@pytest.mark.parametrize(("words", "path"), [([], RUN), (["--step", "main"], f"{RUN}/steps/main")])
def test_a_run_or_a_step_is_cancelled(muster, rest, words, path):
    rest.on("POST", f"{path}/cancel", {})

    assert muster("run", "cancel", "nightly", *words, "--reason", "wrong fleet")[0] == 0
    assert rest.sent("POST", f"{path}/cancel") == [{"reason": "wrong fleet"}]


def test_a_cancel_without_a_reason_sends_none(muster, rest):
    rest.on("POST", f"{RUN}/cancel", {})

    muster("run", "cancel", "nightly")

    assert rest.sent("POST", f"{RUN}/cancel") == [None]


def test_why_of_a_target_tells_of_the_newest_attempt_that_is_over(muster, rest):
    """One that runs has nothing to tell; a blocker that only an older one saw is still the news."""
    target = f"{RUN}/steps/main/targets/id-of-tenant_07"
    third = {"attempt": 3, "lifecycle": "Failed", "sqlstate": "55P03", "message": "lock timeout"}
    attempts = [{"attempt": 4, "lifecycle": "InProgress"}, third, BLOCKED]
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07", "InProgress")))
    rest.on("GET", f"{target}/why", {"lifecycle": "InProgress"})
    rest.on("GET", f"{target}/attempts", listed(*({"properties": each} for each in attempts)))

    told = muster("run", "why", "nightly", "tenant_07")[1]

    assert "attempt 3: Failed" in told and "blocked by pid 4711 (checkout" in told


def test_why_of_a_target_names_who_blocks_it_right_now(muster, rest):
    target = f"{RUN}/steps/main/targets/id-of-tenant_07"
    running = {"attempt": 1, "lifecycle": "InProgress"}
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07", "InProgress")))
    details = {"details": {"blockers": [{"pid": 7, "application_name": "psql"}]}}
    rest.on("GET", f"{target}/why", {"lifecycle": "InProgress", **details})
    rest.on("GET", f"{target}/attempts", listed({"properties": running}))

    assert "blocked by pid 7 (psql)" in muster("run", "why", "nightly", "tenant_07")[1]


def test_why_of_targets_without_a_stored_reason_is_asked_for_each_server(muster, rest):
    """Only the engine knows what they wait for."""
    waiting = [
        a_target("a", "Created"),
        a_target("b", "Created"),
        a_target("c", "Created", server="fleet-2"),
    ]
    rest.on("GET", SUMMARY, a_summary("WaitingForChildJobExecutions", Created=3))
    rest.on("GET", f"{RUN}/targets", listed(*waiting))
    for name, reason in (("a", "ServerConnections"), ("c", "ServerDisabled")):
        answer = {"lifecycle": "Created", "waitReason": reason, "message": f"{reason}!"}
        rest.on("GET", f"{RUN}/steps/main/targets/id-of-{name}/why", answer)

    assert muster("run", "why", "nightly", "-o", "tsv")[1].splitlines()[1:] == [
        "ServerConnections\t2\tfleet-1/a\tServerConnections!",
        "ServerDisabled\t1\tfleet-2/c\tServerDisabled!",
    ]


# Who did it, and what became of it


CANCELLED = {
    "requestedBy": "ann", "requestedAt": "2031-01-01T00:00:05.5Z", "reason": "wrong fleet", "door": "rest",
    "needed": "pg_cancel_backend", "completedAt": "2031-01-01T00:00:06Z",
}  # fmt: skip
TARGET = f"{RUN}/steps/main/targets/id-of-tenant_07"


def an_end(rest, lifecycle, attempt=None, *, cancellations=(), **why):
    """Of tenant_07: what the API tells about it and its only attempt."""
    rest.on("GET", f"{RUN}/targets", listed(a_target("tenant_07", lifecycle)))
    told = {"lifecycle": lifecycle, "cancellations": list(cancellations), **why}
    rest.on("GET", f"{TARGET}/why", told)
    attempts = [{"properties": attempt}] if attempt else []
    rest.on("GET", f"{TARGET}/attempts", listed(*attempts))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"origin": "caller", "actor": "ann", "door": "rest"},
            "started by ann over REST, version 3",
        ),
        (
            {"origin": "slot", "actor": "schedule", "slot": "2031-01-01T00:00:00Z"},
            "started by its schedule for 2031-01-01T00:00:00Z, version 3",
        ),
        ({"origin": "rerun", "actor": "bob", "door": "psql"}, "rerun by bob in psql, version 3"),
    ],
)
def test_show_tells_who_started_it(muster, rest, more, line):
    rest.on("GET", SUMMARY, a_summary(Succeeded=1, jobVersion=3, **more))

    assert f"  {line}" in muster("run", "show", "nightly")[1].splitlines()


@pytest.mark.parametrize("verb", ["show", "why"])
def test_who_cancelled_it_is_told(muster, rest, verb):
    part = {"requestedBy": "bob", "requestedAt": "2031-01-01T00:00:07Z", "door": "psql"}
    one = {**part, "stepName": "main", "targetId": "t", "serverName": "s", "databaseName": "d"}
    said = [CANCELLED, {**part, "stepName": "main"}, one]
    rest.on("GET", SUMMARY, a_summary("Canceled", Canceled=1, cancellations=said))
    rest.on("GET", f"{RUN}/targets", listed())

    lines = muster("run", verb, "nightly")[1].splitlines()

    assert [line for line in lines if "cancelled" in line] == [
        "  cancelled by ann over REST at 2031-01-01T00:00:05Z: wrong fleet (over at 2031-01-01T00:00:06Z, it took pg_cancel_backend)",
        "  cancelled step main by bob in psql at 2031-01-01T00:00:07Z (under way)",
        "  cancelled s/d of step main by bob in psql at 2031-01-01T00:00:07Z (under way)",
    ]  # fmt: skip


def test_why_of_a_cancelled_target_tells_who_it_was(muster, rest):
    an_end(rest, "Canceled", cancellations=[CANCELLED], message="It is over: Canceled.")

    assert "  cancelled by ann over REST" in muster("run", "why", "nightly", "tenant_07")[1]


@pytest.mark.parametrize("verb", ["show", "why"])
def test_a_paused_account_is_what_a_run_waits_for(muster, rest, verb):
    rest.on("GET", SUMMARY, a_summary("Created", waitReason="AccountPaused"))

    out = muster("run", verb, "nightly")[1]

    assert "AccountPaused: the account is paused" in out and "muster account resume" in out


def test_why_of_a_target_that_is_over_gives_its_own_reason(muster, rest):
    """Its last attempt failed for another one than the target ended for."""
    failed = {"attempt": 2, "lifecycle": "Failed", "endReason": "LockTimeout", "message": "locked"}
    an_end(rest, "TimedOut", failed, details={"endReason": "TimedOut"})

    first = muster("run", "why", "nightly", "tenant_07")[1].splitlines()[0]
    row = muster("run", "why", "nightly", "tenant_07", "-o", "tsv")[1].splitlines()[1].split("\t")

    assert first == "fleet-1/tenant_07: TimedOut (TimedOut)"
    assert row[:3] == ["fleet-1/tenant_07", "TimedOut", "TimedOut"]


LOST = {
    "attempt": 1, "lifecycle": "Failed", "endReason": "OutcomeUnknown", "message": "Nobody knows.",
    "startTime": "2031-01-01T00:00:01.25Z", "backendPid": 4711,
}  # fmt: skip


def test_why_of_an_unknown_outcome_says_where_to_look_and_what_to_do(muster, rest):
    attempt = LOST | {"xactId": "771@1/2031", "statementNo": 3}
    an_end(rest, "Failed", attempt, details={"endReason": "OutcomeUnknown"})

    out = muster("run", "why", "nightly", "tenant_07")[1]

    assert (
        "  attempt 1: Failed, began 2031-01-01T00:00:01Z, pid 4711, transaction 771, 3 statements completed"
        in out.splitlines()
    )
    assert "→ It may have committed or not: look in the target" in out and "--guard" in out
    assert "from statement" not in out


@pytest.mark.parametrize(("completed", "first"), [({"statementNo": 3}, 4), ({}, 1)])
def test_without_a_transaction_the_first_doubtful_statement_is_told(muster, rest, completed, first):
    attempt = LOST | {"xactId": "autocommit"} | completed
    an_end(rest, "Failed", attempt, details={"endReason": "OutcomeUnknown"})

    out = muster("run", "why", "nightly", "tenant_07")[1]

    assert f"from statement {first} on it is unknown" in out
    assert "transaction autocommit" not in out


def test_why_of_a_run_tells_of_targets_whose_host_was_lost(muster, rest):
    lost = [{"reason": "HostLost", "count": 2}]
    running = [
        a_target("a", "InProgress"),
        a_target("b", "InProgress", waitReason="HostLost"),
        a_target("c", "InProgress", waitReason="HostLost"),
    ]
    rest.on("GET", SUMMARY, a_summary("InProgress", InProgress=3, byReason=lost))
    rest.on(
        "GET",
        f"{RUN}/targets",
        lambda query: listed(*running * ("InProgress" in query["lifecycle"])),
    )
    why = {"lifecycle": "InProgress", "waitReason": "HostLost", "message": "Its host was lost."}
    rest.on("GET", f"{RUN}/steps/main/targets/id-of-b/why", why)

    assert muster("run", "why", "nightly", "-o", "tsv")[1].splitlines()[1:] == [
        "HostLost\t2\tfleet-1/b\tIts host was lost."
    ]


def test_the_attempts_of_a_run_are_listed_with_the_reason_of_the_last_one(muster, rest):
    first = {
        "attempt": 1, "lifecycle": "Failed", "startTime": "2031-01-01T00:00:00Z",
        "endTime": "2031-01-01T00:00:09Z", "newlySucceeded": 0, "remaining": 3,
        "nextAttemptTime": "2031-01-01T00:00:19Z", "message": "Attempt 2 begins soon.",
    }  # fmt: skip
    rest.on("GET", RUN, a_run(lifecycle="WaitingForRetry", runAttempts=[first]), a_run())

    code, out, _ = muster("run", "attempts", "nightly")

    assert code == 0
    assert out.split() == [
        "attempt", "lifecycle", "started", "ended", "newly_succeeded", "remaining", "next_attempt",
        "1", "Failed", "2031-01-01T00:00:00Z", "2031-01-01T00:00:09Z", "0", "3",
        "2031-01-01T00:00:19Z", "Attempt", "2", "begins", "soon.",
    ]  # fmt: skip
    assert "The run has no attempts" in muster("run", "attempts", "nightly")[1]


def test_wait_goes_on_while_the_run_waits_for_its_next_attempt(muster, rest):
    waits = a_summary("WaitingForRetry", Failed=1, Succeeded=2, waitReason="NextRunAttempt")
    rest.on("GET", SUMMARY, waits, GOING, waits, a_summary(Succeeded=3))

    code, out, _ = muster("run", "wait", "nightly")

    assert (code, len(rest.asked(SUMMARY))) == (0, 4)
    assert "3 of 3 targets succeeded" in out
