"""`muster run errors`: every cause, of targets and of steps, with what to do about it."""

import json

import pytest

from tests.unit.cli.fake_rest import (
    ACCOUNT, JOB, RUN, SUBSCRIPTION, a_cause, a_run, a_server, a_summary, an_account, listed,
)  # fmt: skip

SUMMARY = f"{RUN}/summary"


@pytest.fixture(autouse=True)
def newest(rest):
    rest.on("GET", f"{JOB}/executions", listed(a_run()))
    rest.on("GET", SUMMARY, a_summary("Failed", Failed=1))


def test_errors_are_one_line_for_each_cause_with_the_next_command(muster, rest):
    causes = [
        a_cause("42703", 412, "no such column", hint="Add it."),
        a_cause("28P01", 3, "password authentication failed"),
        a_cause(None, 1, "Nothing was found.", reason="NoTargets", targets=[]),
        a_cause("55P03", 1, "lock timeout", retrying=1),
    ]
    rest.on("GET", f"{RUN}/errors", listed(*causes))

    code, out, _ = muster("run", "errors", "nightly", "-o", "tsv")

    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["412", "0", "42703"],
        ["3", "0", "28P01"],
        ["1", "0", "NoTargets"],
        ["1", "1", "55P03"],
    ]
    assert rows[0][3:] == [
        "no such column",
        "fleet-1/tenant_07",
        "muster run why 3f2a1c9e fleet-1/tenant_07",
    ]
    assert rows[1][5].startswith("muster credential set ")
    assert rows[2][5] == "muster group resolve GROUP"
    assert json.loads(muster("run", "errors", "nightly", "-o", "json")[1]) == {"value": causes}
    assert muster("run", "errors", "nightly")[1].splitlines()[-2:] == [
        "4 causes, 417 targets.",
        "hint for 42703: Add it.",
    ]


def test_no_errors_are_said_to_be_none(muster, rest):
    rest.on("GET", SUMMARY, a_summary(Succeeded=2))
    rest.on("GET", f"{RUN}/errors", listed())

    assert muster("run", "errors", "nightly")[1].splitlines()[-1] == "Nothing went wrong."


def a_step(lifecycle, **more):
    return {"stepId": 1, "stepName": "main", "lifecycle": lifecycle, "counts": {}, **more}


def test_a_step_that_came_to_no_targets_is_a_cause(muster, rest):
    step = a_step("Failed", endReason="NoTargets", lastMessage="The target group has no targets.")
    rest.on("GET", SUMMARY, a_summary("Failed", steps=[step], lastMessage="0 of 1 steps."))
    rest.on("GET", f"{RUN}/errors", listed())

    code, out, _ = muster("run", "errors", "nightly")

    assert code == 0 and "Nothing went wrong." not in out
    assert out.splitlines()[1:] == [
        "      0  NoTargets  The target group has no targets.  muster group resolve GROUP",
        "1 cause, 0 targets.",
    ]
    told = json.loads(muster("run", "errors", "nightly", "-o", "json")[1])["value"]
    assert [(each["stepName"], each["reason"]) for each in told] == [("main", "NoTargets")]


def test_a_run_that_reached_no_step_is_a_cause_itself(muster, rest):
    why = {"endReason": "InternalError", "lastMessage": "It broke."}
    rest.on("GET", SUMMARY, a_summary("Failed", steps=[], **why))
    rest.on("GET", f"{RUN}/errors", listed())

    row = muster("run", "errors", "nightly", "-o", "tsv")[1].splitlines()[1].split("\t")

    assert row == ["0", "0", "InternalError", "It broke.", "", "muster run why 3f2a1c9e"]


def test_a_step_whose_targets_failed_is_told_by_them_alone(muster, rest):
    rest.on("GET", SUMMARY, a_summary("Failed", Failed=1, endReason="StatementFailed"))
    rest.on("GET", f"{RUN}/errors", listed(a_cause("42703", 1, "no such column")))

    assert muster("run", "errors", "nightly")[1].splitlines()[-1] == "1 cause, 1 target."


@pytest.mark.parametrize(
    ("cause", "command", "hint"),
    [
        (
            {"fingerprint": "TargetAuthenticationFailed",
             "message": "The server h did not accept the login 'job runner'."},
            "muster credential set NAME --username 'job runner'",
            "Is the password right",
        ),
        (
            {"fingerprint": "TargetTlsError", "message": "No verified TLS connection to h: no."},
            "muster server add fleet-1 --replace --host HOST --port PORT --ssl-mode MODE",
            "A server without TLS needs --ssl-mode disable",
        ),
        (
            {"fingerprint": "TargetUnreachable", "message": "The server h can't be reached."},
            "muster server add fleet-1 --replace --host HOST --port PORT",
            "are its host and port right?",
        ),
        (
            {"fingerprint": "TargetDatabaseNotFound", "message": "It does not exist on h."},
            "muster group resolve GROUP",
            "dropped or renamed",
        ),
        (
            {"fingerprint": "TargetAuthenticationFailed", "reason": "TargetsUnresolved"},
            "muster credential set NAME --username USER",
            "Is the password right",
        ),
        (
            {"fingerprint": "TargetAuthenticationFailed", "sqlstate": "28P01",
             "message": "The server h did not accept the login 'u': the password is wrong."},
            "muster credential set NAME --username u",
            "",
        ),
        (
            {"fingerprint": "TargetAuthenticationFailed", "sqlstate": "28000",
             "message": "The server h accepts no login as 'u' from here."},
            "select * from pg_hba_file_rules",
            "may the role log in?",
        ),
        (
            {"fingerprint": "ClientKeyUnreadable", "reason": "ClientKeyUnreadable"},
            "muster server add fleet-1 --replace --host HOST --port PORT "
            "--client-certificate-file FILE --client-key-file FILE",
            "sealed again",
        ),
        (
            {"fingerprint": "ConnectNotGranted", "sqlstate": "42501",
             "message": 'No. Run: GRANT CONNECT ON DATABASE "a""b" TO "u";'},
            'GRANT CONNECT ON DATABASE "a""b" TO "u";',
            "As the owner of the database",
        ),
        (
            {"fingerprint": "ConnectNotGranted", "reason": "TargetsUnresolved", "message": "No."},
            "grant connect on database DATABASE to ROLE",
            "As the owner of the database",
        ),
        (
            {"sqlstate": "42501", "message": "permission denied for table orders"},
            "grant … on table orders to ROLE",
            "Grant it in the targets",
        ),
        (
            {"sqlstate": "42501", "message": "permission denied for view v; rm -rf ~"},
            "grant … on table v to ROLE",
            "Grant it in the targets",
        ),
        (
            {"sqlstate": "42501", "message": "must be owner of table orders"},
            "grant OWNER to ROLE",
            "as the owner",
        ),
    ],
)  # fmt: skip
def test_common_causes_say_what_to_do(muster, rest, cause, command, hint):
    """A failure to connect has no SQLSTATE: its fingerprint is the code of the failure."""
    cause = {"reason": "ConnectFailed", **cause}
    message = cause.pop("message", "")
    rest.on(
        "GET", f"{RUN}/errors", listed(a_cause(cause.pop("sqlstate", None), 1, message, **cause))
    )

    told = muster("run", "errors", "nightly", "-o", "tsv")[1].splitlines()[1].split("\t")[-1]

    assert told == command
    assert hint in muster("run", "errors", "nightly")[1]


def two_steps(lifecycle, **more):
    failed = {"counts": {"Failed": 1}}
    steps = [a_step(lifecycle, **failed), a_step(lifecycle, stepName="second one", **failed)]
    return a_summary(lifecycle, steps=steps, **more)


def test_in_a_run_of_several_steps_the_next_command_names_the_step(muster, rest):
    rest.on("GET", SUMMARY, two_steps("Failed", Failed=2, Succeeded=2))
    cause = a_cause("42703", 2, "no such column")
    cause["targets"][0]["stepName"] = "second one"
    rest.on("GET", f"{RUN}/errors", listed(cause))

    out = muster("run", "errors", "nightly", "-o", "tsv")[1]

    command = "muster run why 3f2a1c9e fleet-1/tenant_07 --step 'second one'"
    assert out.splitlines()[1].split("\t")[-1] == command
    assert muster("run", "errors", "nightly")[1].splitlines()[-1] == "1 cause, 2 target executions."


@pytest.mark.parametrize("reason", ["TimedOut", "Canceled", "OutcomeUnknown", "HostLost"])
def test_how_a_target_ended_counts_more_than_its_last_sqlstate(muster, rest, reason):
    rest.on("GET", f"{RUN}/errors", listed(a_cause("55P03", 1, "Too late.", reason=reason)))

    assert (
        muster("run", "errors", "nightly", "-o", "tsv")[1].splitlines()[1].split("\t")[2] == reason
    )


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("OutcomeUnknown", "look in the target"),
        ("HostLost", "nothing was committed"),
        ("VerifyFailed", "its effect is not there"),
        ("VerifyNotAnswered", "is not repeated"),
        ("OutputFailed", "Correct the table"),
    ],
)
def test_a_doubtful_end_says_what_to_do(muster, rest, reason, hint):
    """The fingerprint is the same for both."""
    cause = a_cause(None, 1, "Lost.", reason=reason, fingerprint="HostLost")
    rest.on("GET", f"{RUN}/errors", listed(cause))

    out = muster("run", "errors", "nightly")[1]

    assert hint in out and "muster run why 3f2a1c9e fleet-1/tenant_07" in out


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (a_summary("Canceled", Canceled=2), "Nothing failed; it was cancelled."),
        (a_summary("InProgress", InProgress=2), "Nothing went wrong so far."),
    ],
)
def test_no_errors_are_not_said_to_be_a_success(muster, rest, summary, said):
    rest.on("GET", SUMMARY, summary)
    rest.on("GET", f"{RUN}/errors", listed())

    assert muster("run", "errors", "nightly")[1].splitlines()[-1] == said


LOGIN = {"name": "login", "properties": {"username": "job runner"}}


def known(rest, *, step=None, member=None, server=None, account=None):
    """An installation in which exactly one place names the credential."""
    said = {"targetGroup": f"{ACCOUNT}/targetGroups/prod eu"}
    rest.on(
        "GET", f"{JOB}/steps/main", {"properties": said | ({"credential": step} if step else {})}
    )
    of_server = {"type": "SqlServer", "serverName": "Fleet-1"}
    members = [
        {"type": "SqlServer", "serverName": "other", "credential": f"{ACCOUNT}/credentials/wrong"},
        of_server | ({"credential": member} if member else {}),
    ]
    rest.on("GET", f"{ACCOUNT}/targetGroups/prod eu", {"properties": {"members": members}})
    rest.on(
        "GET",
        f"{SUBSCRIPTION}/providers/Microsoft.Sql/servers",
        listed(a_server(jobCredential=server)),
    )
    rest.on("GET", ACCOUNT, an_account(defaultCredential=account))
    rest.on("GET", f"{ACCOUNT}/credentials/login", LOGIN)
    return rest


def next_command(muster, rest, cause):
    rest.on("GET", f"{RUN}/errors", listed(cause))
    told = muster("run", "errors", "nightly", "--account", ACCOUNT, "-o", "tsv")[1]
    return told.splitlines()[1].split("\t")[-1]


@pytest.mark.parametrize("place", ["step", "member", "server", "account"])
def test_a_hint_names_the_credential_and_the_user_wherever_they_are_given(muster, rest, place):
    name = "login" if place == "server" else f"{ACCOUNT}/credentials/login"

    told = next_command(muster, known(rest, **{place: name}), a_cause("28P01", 1, "wrong password"))

    assert told == "muster credential set login --username 'job runner'"


def test_a_hint_names_the_group_and_the_role(muster, rest):
    known(rest, step=f"{ACCOUNT}/credentials/login")

    gone = a_cause(None, 1, "Gone.", fingerprint="TargetDatabaseNotFound")
    assert next_command(muster, rest, gone) == "muster group resolve 'prod eu'"
    denied = a_cause("42501", 1, "permission denied for table orders")
    assert next_command(muster, rest, denied) == 'grant … on table orders to "job runner"'


def test_a_message_that_names_the_credential_is_believed(muster, rest):
    message = "The secret of the credential 'fleet' is env:X, which the launcher's environment does not have."
    cause = a_cause(None, 1, message, reason="CredentialUnreadable")

    assert next_command(muster, rest, cause).startswith("muster credential set fleet --username")


def test_a_cause_is_told_with_its_place_in_the_script(muster, rest):
    cause = a_cause("42601", 60, 'syntax error at or near "selec"', line=2, column=5)
    rest.on("GET", f"{RUN}/errors", listed(cause))

    out = muster("run", "errors", "nightly", "-o", "tsv")[1].splitlines()

    assert len(out) == 2
    assert out[1].split("\t")[3] == 'line 2, column 5: syntax error at or near "selec"'
