"""`muster server|group|credential|job …`: what is typed becomes what the API takes."""

import shlex
import re
import io
import json
import sys

from pathlib import Path

import pytest

from muster.cli import main as cli
from tests.unit.cli.fake_rest import (
    ACCOUNT, JOB, RUN, RUN_ID, SERVER, SUBSCRIPTION, a_run, a_server, a_summary, listed, refusal,
)  # fmt: skip

GROUPS = f"{SUBSCRIPTION}/resourceGroups"
GROUP = f"{ACCOUNT}/targetGroups/prod"
ANOTHER = SERVER.replace("fleet-1", "eu1")


@pytest.fixture
def one_group(rest):
    rest.on("GET", GROUPS, listed({"id": f"{GROUPS}/g1"}))
    rest.on(
        "PUT", ANOTHER, a_server("eu1", conditions=[{"type": "TlsNotVerified", "message": "Weak."}])
    )
    return rest


def test_a_server_is_registered_with_what_was_said(muster, one_group, tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text(f"PEM of {name}")
    (tmp_path / "password").write_text("secret word\n")

    code, out, err = muster(
        "server", "add", "eu1", "--host", "db1", "--port", "6432", "--ssl-mode", "require",
        "--ca-file", str(tmp_path / "ca.pem"), "--client-certificate-file", str(tmp_path / "cert.pem"),
        "--client-key-file", str(tmp_path / "key.pem"), "--pooling", "transaction", "--max-connections", "20",
        "--job-credential", "login", "--label", "region=eu", "--label", "a=b=c",
        "--admin", "root", "--admin-password-file", str(tmp_path / "password"),
    )  # fmt: skip

    assert (code, err) == (0, "")
    assert one_group.sent("PUT", ANOTHER) == [
        {
            "location": "local",
            "properties": {
                "endpoint": {"host": "db1", "port": 6432, "sslMode": "require", "pooling": "transaction", "caCertificate": "PEM of ca",
                             "clientCertificate": "PEM of cert", "clientKey": "PEM of key"},
                "maxConnections": 20,
                "jobCredential": "login",
                "labels": {"region": "eu", "a": "b=c"},
                "administratorLogin": "root",
                "administratorLoginPassword": "secret word",
            },
        }
    ]  # fmt: skip
    assert out.splitlines()[1].startswith("eu1") and "TlsNotVerified: Weak." in out
    assert one_group.requests[-1].headers["if-none-match"] == "*"


def test_a_group_and_a_subscription_that_are_named_are_made(muster, rest):
    path = "/subscriptions/mine/resourceGroups/fleet/providers/Microsoft.Sql/servers/eu1"
    for made in ("/subscriptions/mine", "/subscriptions/mine/resourceGroups/fleet", path):
        rest.on("PUT", made, a_server("eu1"))

    assert (
        muster(
            "server",
            "add",
            "eu1",
            "--host",
            "db",
            "--subscription",
            "mine",
            "--resource-group",
            "fleet",
            "--create",
        )[0]
        == 0
    )

    assert [each.url.path for each in rest.requests if each.method == "PUT"] == [
        "/subscriptions/mine", "/subscriptions/mine/resourceGroups/fleet", path,
    ]  # fmt: skip


def test_where_a_server_goes_is_asked_when_it_is_not_clear(muster, rest):
    rest.on("GET", GROUPS, listed({"id": f"{GROUPS}/g1"}, {"id": f"{GROUPS}/g2"}))

    assert (
        "which resource group? Use --resource-group: g1, g2"
        in muster("server", "add", "x", "--host", "h")[2]
    )


@pytest.mark.parametrize("words", [["--port", "1"], ["--host", "h", "--label", "x"]])
def test_half_a_server_is_refused_here(muster, one_group, words):
    assert muster("server", "add", "eu1", *words)[0] == 1
    assert one_group.sent("PUT", ANOTHER) == []


def test_what_is_there_is_not_written_over_by_accident(muster, one_group):
    one_group.on("PUT", ANOTHER, refusal(412, "PreconditionFailed", "It exists."))

    assert muster("server", "add", "eu1", "--host", "h")[::2] == (
        1,
        "muster: Exists: 'eu1' is there already; muster server update changes it, --replace writes over it\n",
    )
    muster("server", "add", "eu1", "--host", "h", "--replace")
    assert "if-none-match" not in one_group.requests[-1].headers


def test_servers_are_listed(muster, rest):
    assert muster("server", "list", "-o", "tsv")[1].splitlines() == [
        "name\thost\tport\tstate\tversion\tmax_connections\tjob_credential",
        "fleet-1\t127.0.0.1\t20001\tReady\t17.2\t10\t",
    ]


def test_a_group_is_made_of_what_is_typed(muster, rest):
    rest.on("PUT", GROUP, {"name": "prod", "properties": {"members": []}})
    login = f"{ACCOUNT}/credentials/login"

    code, _, err = muster(
        "group", "create", "prod", "--server", "eu1", "--server", "eu2", "--database", "us1/a/b",
        "--pool", "eu1/gold", "--schema", "eu1/app/t_*", "--schema", "eu1/*/t_*", "--group", "other",
        "--exclude-database", "eu1/jobs", "--exclude-server", "eu9", "--credential", "login",
    )  # fmt: skip

    assert (code, err) == (0, "")
    listing = {"credential": login, "refreshCredential": login}
    include, exclude = {"membershipType": "Include"}, {"membershipType": "Exclude"}
    assert rest.sent("PUT", GROUP)[0]["properties"]["members"] == [
        {**include, "type": "SqlServer", "serverName": "eu1", **listing},
        {**include, "type": "SqlServer", "serverName": "eu2", **listing},
        {
            **include,
            "type": "SqlDatabase",
            "serverName": "us1",
            "databaseName": "a/b",
            "credential": login,
        },
        {
            **include,
            "type": "SqlElasticPool",
            "serverName": "eu1",
            "elasticPoolName": "gold",
            **listing,
        },
        {
            **include,
            "type": "SqlSchema",
            "serverName": "eu1",
            "databaseName": "app",
            "schemaPattern": "t_*",
            **listing,
        },
        {**include, "type": "SqlSchema", "serverName": "eu1", "schemaPattern": "t_*", **listing},
        {**include, "type": "TargetGroup", "targetGroup": f"{ACCOUNT}/targetGroups/other"},
        {**exclude, "type": "SqlServer", "serverName": "eu9"},
        {**exclude, "type": "SqlDatabase", "serverName": "eu1", "databaseName": "jobs"},
    ]


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_group_comes_from_a_file_too(muster, rest, tmp_path, wrapped):
    members = [{"type": "SqlServer", "serverName": "eu1"}]
    file = tmp_path / "members.json"
    file.write_text(json.dumps({"members": members} if wrapped else members))
    rest.on("PUT", GROUP, {"name": "prod", "properties": {"members": members}})

    assert muster("group", "create", "prod", "--file", str(file))[1].splitlines() == [
        "membership  type       server",
        "            SqlServer  eu1",
    ]
    assert rest.sent("PUT", GROUP) == [{"properties": {"members": members}}]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--database", "eu1"], "'eu1' is no database: expected SERVER/DATABASE"),
        (["--schema", "eu1/db"], "expected SERVER/DATABASE/PATTERN"),
        (["--server", ""], "is no server"),
        ([], "a group needs members"),
        (["--file", "/nowhere.json"], "can't be read"),
    ],
)
def test_half_a_member_is_refused_here(muster, rest, words, why):
    code, _, err = muster("group", "create", "prod", *words)

    assert code == 1 and why in err
    assert rest.sent("PUT", GROUP) == []


@pytest.mark.parametrize("text", ["{", '"x"', "[1]", '{"members": 3}'])
def test_a_file_of_something_else_is_refused(muster, tmp_path, text):
    file = tmp_path / "f"
    file.write_text(text)

    assert muster("group", "create", "prod", "--file", str(file))[0] == 1


def test_groups_are_shown_and_listed(muster, rest):
    shown = {
        "name": "prod",
        "properties": {
            "members": [
                {
                    "membershipType": "Include",
                    "type": "TargetGroup",
                    "targetGroup": f"{ACCOUNT}/targetGroups/x",
                }
            ]
        },
    }
    rest.on("GET", GROUP, shown)
    rest.on("GET", f"{ACCOUNT}/targetGroups", listed(shown))

    assert muster("group", "show", "prod")[1].splitlines()[1] == "Include     TargetGroup  x"
    assert muster("group", "list", "-o", "tsv")[1] == "name\tmembers\nprod\t1\n"
    assert muster("group", "show", "none")[0] == 6


def test_resolve_shows_targets_what_is_left_out_and_who_is_away(muster, rest):
    found = {
        "count": 2, "truncated": True,
        "targets": [{"type": "SqlDatabase", "serverName": "eu1", "databaseName": "a",
                     "member": {"targetGroup": "prod", "position": 1, "text": "SqlServer eu1"}}],
        "leftOutCount": 2,
        "leftOut": [
            {"serverName": "eu1", "databaseName": "postgres", "reason": "maintenance"},
            {"serverName": "eu1", "databaseName": "t_1", "reason": "Excluded",
             "rule": "x", "excludedBy": "SqlDatabase eu1/t_*",
             "member": {"targetGroup": "prod", "position": 2, "text": "SqlDatabase eu1/t_*"}},
        ],
        "notShownCount": 1,
        "missing": [{"serverName": "eu1", "databaseName": "gone"}],
        "unreachable": [
            {"serverName": "eu2", "code": "TargetTimeout", "message": "No answer."},
            {"serverName": "eu1", "databaseName": "b", "code": "ConnectNotGranted", "message": "No."},
        ],
    }  # fmt: skip
    rest.on("POST", f"{GROUP}/resolve", found)

    code, out, _ = muster("group", "resolve", "prod")

    assert code == 2
    assert out.splitlines() == [
        "server  database  is           rule     reason",
        "eu1     a         target       prod[1]",
        "eu1     postgres  left out              maintenance",
        "eu1     t_1       left out     prod[2]  Excluded by SqlDatabase eu1/t_*",
        "eu1     gone      missing               no such database",
        "eu2               unreachable           TargetTimeout: No answer.",
        "eu1     b         unreachable           ConnectNotGranted: No.",
        "2 targets, the first 1 shown (1 lines are not shown in all), 2 left out, 1 missing, 1 server unreachable, 1 database unreachable.",
    ]
    assert json.loads(muster("group", "resolve", "prod", "-o", "json")[1]) == found


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 0),
        ({"count": 0, "targets": []}, 0),
        ({"missing": [{"serverName": "eu1", "databaseName": "gone"}]}, 2),
        ({"unreachable": [{"serverName": "eu2", "code": "c", "message": "m"}]}, 2),
        ({"unreachable": [{"serverName": "eu2", "code": "c", "message": "m"}], "count": 0}, 3),
    ],
)
def test_resolve_fails_when_something_is_missing_or_away(muster, rest, more, expected):
    target = {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "a"}
    rest.on("POST", f"{GROUP}/resolve", {"count": 1, "targets": [target], "leftOut": []} | more)

    assert muster("group", "resolve", "prod")[0] == expected


def test_a_pattern_of_databases_is_sent_as_it_is_and_listed_by_the_credential(muster, rest):
    rest.on("PUT", GROUP, {"name": "prod", "properties": {"members": []}})

    code, _, err = muster(
        "group", "create", "prod", "--database", "eu1/*", "--database", "eu1/one",
        "--exclude-database", "eu1/tenant_0*", "--credential", "login",
    )  # fmt: skip

    assert (code, err) == (0, "")
    login = f"{ACCOUNT}/credentials/login"
    of_eu1 = {"type": "SqlDatabase", "serverName": "eu1"}
    assert rest.sent("PUT", GROUP)[-1]["properties"]["members"] == [
        {**of_eu1, "membershipType": "Include", "databaseName": "*", "credential": login, "refreshCredential": login},
        {**of_eu1, "membershipType": "Include", "databaseName": "one", "credential": login},
        {**of_eu1, "membershipType": "Exclude", "databaseName": "tenant_0*"},
    ]  # fmt: skip


def test_members_with_labels_are_added_to_those_that_a_group_has(muster, rest):
    old = {"type": "SqlServer", "serverName": "eu1", "membershipType": "Include"}
    rest.on("GET", GROUP, {"name": "prod", "properties": {"members": [old]}})
    rest.on("PUT", GROUP, {"name": "prod", "properties": {"members": []}})

    code, _, err = muster(
        "group", "add", "prod", "--server", "eu2", "--labels", "tier=gold",
        "--exclude-database", "eu1/t_*", "--exclude-labels", "!billed", "--pool", "eu1/p",
    )  # fmt: skip

    assert (code, err) == (0, "")
    assert rest.sent("PUT", GROUP)[-1]["properties"]["members"] == [
        old,
        {"membershipType": "Include", "type": "SqlServer", "serverName": "eu2", "labels": "tier=gold"},
        {"membershipType": "Include", "type": "SqlElasticPool", "serverName": "eu1", "elasticPoolName": "p"},
        {"membershipType": "Exclude", "type": "SqlDatabase", "serverName": "eu1", "databaseName": "t_*",
         "labels": "!billed"},
    ]  # fmt: skip


@pytest.mark.parametrize("option", ["labels", "exclude-labels"])
def test_labels_without_a_server_or_database_to_select_from_are_refused(muster, rest, option):
    code, _, err = muster("group", "create", "prod", "--pool", "eu1/p", f"--{option}", "a=b")

    assert code == 1
    assert f"--{option} needs" in err


CREDENTIAL = f"{ACCOUNT}/credentials/login"


@pytest.fixture
def credential(rest):
    rest.on("PUT", CREDENTIAL, {"name": "login", "properties": {"username": "u"}})
    return rest


def test_a_password_comes_from_a_file(muster, credential, tmp_path):
    (tmp_path / "p").write_text("secret\n")

    code, out, err = muster(
        "credential", "set", "login", "--username", "u", "--password-file", str(tmp_path / "p")
    )

    assert code == 0 and "secret" not in out + err
    assert credential.sent("PUT", CREDENTIAL) == [
        {"properties": {"username": "u", "password": "secret"}}
    ]


def test_a_password_comes_from_stdin_or_the_terminal(muster, credential, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("piped\n"))
    assert muster("credential", "set", "login", "--username", "u")[0] == 0

    from tests.unit.cli.conftest import Terminal

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: "typed")
    assert muster("credential", "set", "login", "--username", "u")[0] == 0

    sent = [each["properties"]["password"] for each in credential.sent("PUT", CREDENTIAL)]
    assert sent == ["piped", "typed"]


def test_an_empty_password_is_refused(muster, credential, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))

    assert muster("credential", "set", "login", "--username", "u")[::2] == (
        1,
        "muster: the password is empty\n",
    )


def test_a_credential_lists_the_servers_that_it_is_for(muster, credential):
    muster(
        "credential", "set", "login", "--username", "u", "--reference", "env:FLEET",
        "--server", "eu1", "--server", "eu2",
    )  # fmt: skip

    (sent,) = credential.sent("PUT", CREDENTIAL)
    assert sent["properties"]["servers"] == ["eu1", "eu2"]


def test_a_reference_stands_in_the_place_of_a_password(muster, credential):
    muster("credential", "set", "login", "--username", "u", "--reference", "env:FLEET")

    assert credential.sent("PUT", CREDENTIAL) == [
        {"properties": {"username": "u", "reference": "env:FLEET"}}
    ]
    assert (
        muster(
            "credential",
            "set",
            "login",
            "--username",
            "u",
            "--reference",
            "x",
            "--password-file",
            "y",
        )[0]
        == 1
    )


def test_a_password_is_sealed_here(muster, rest, monkeypatch):
    import base64
    from uuid import UUID

    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from muster.core.sealing import belongs_to, open_sealed

    private = X25519PrivateKey.generate()
    public = base64.b64encode(private.public_key().public_bytes_raw()).decode()
    uid, identity = "3f0c2f6e-4d0e-4f1b-9f0a-2f7a55a4a001", "9d5ae1c7-95f7-4b0c-8f6c-0d4c5a1be002"
    rest.on(
        "POST",
        f"{ACCOUNT}/sealingKey",
        {"publicKey": public, "accountUid": uid, "identity": identity},
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))

    code, out, _ = muster("credential", "seal", "Login")

    assert code == 0
    raw = base64.b64encode(private.private_bytes_raw()).decode()
    from muster.core.settings import Secret

    assert (
        open_sealed(
            Secret(raw), out.strip(), belongs_to(UUID(uid), UUID(identity), "login")
        ).reveal()
        == "secret"
    )


@pytest.fixture
def a_job(rest):
    shown = {
        "name": "nightly",
        "properties": {
            "version": 1,
            "schedule": {
                "type": "Recurring",
                "cron": "0 3 * * *",
                "timeZone": "UTC",
                "enabled": True,
            },
        },
    }
    step = {
        "name": "main",
        "properties": {"stepId": 1, "targetGroup": GROUP, "action": {"value": "select 1"}},
    }
    rest.on("PUT", JOB, shown)
    rest.on("GET", JOB, shown)
    rest.on("GET", f"{JOB}/steps", listed(step))
    rest.on("GET", f"{JOB}/nextRuns", listed({"time": "2031-01-01T03:00:00Z"}))
    rest.on("GET", f"{ACCOUNT}/jobs", listed(shown))
    return rest


def the_step(rest):
    """Of the job that was written last."""
    (step,) = rest.sent("PUT", JOB)[-1]["properties"]["steps"]
    return step


def test_a_job_is_made_with_its_step(muster, a_job):
    code, out, err = muster(
        "job", "create", "nightly", "-g", "prod", "-c", "select 1", "--credential", "login",
        "--cron", "0 3 * * *", "--time-zone", "Europe/Berlin", "--overlap", "queueOne", "--timeout", "2h",
        "--retry-attempts", "0", "--retry-interval", "2s", "--retry-maximum", "1m", "--lock-timeout", "0",
        "--max-parallelism", "4", "--transaction", "none", "--role", "owner", "--guard", "run", "--idempotent",
        "--description", "Every night.",
    )  # fmt: skip

    assert (code, err) == (0, "")
    schedule = {
        "overlap": "queueOne",
        "enabled": True,
        "type": "Recurring",
        "cron": "0 3 * * *",
        "timeZone": "Europe/Berlin",
    }
    step = {
        "name": "main",
        "targetGroup": GROUP,
        "credential": f"{ACCOUNT}/credentials/login",
        "action": {"value": "select 1"},
        "executionOptions": {
            "timeoutSeconds": 7200, "retryAttempts": 0, "initialRetryIntervalSeconds": 2,
            "maximumRetryIntervalSeconds": 60, "maxParallelism": 4,
        },
        "settings": {"lockTimeoutSeconds": 0, "role": "owner"},
        "transaction": "none",
        "guard": True,
        "idempotent": True,
    }  # fmt: skip
    properties = {"schedule": schedule, "description": "Every night.", "steps": [step]}
    assert a_job.sent("PUT", JOB) == [{"properties": properties}]
    (put,) = [each for each in a_job.requests if each.method != "GET"]
    assert put.headers["if-none-match"] == "*"
    assert "nightly        1  0 3 * * * UTC  true" in out and "select 1" in out


@pytest.mark.parametrize(
    ("verb", "sent"),
    [
        ("pause", {"paused": True}),
        ("resume", {"paused": False}),
        ("enable", {"schedule": {"enabled": True}}),
        ("disable", {"schedule": {"enabled": False}}),
    ],
)
def test_a_job_is_paused_resumed_enabled_and_disabled_by_a_patch(muster, a_job, verb, sent):
    shown = {"schedule": {"cron": "0 3 * * *", "timeZone": "UTC", "enabled": True}, "paused": True}
    a_job.on("PATCH", JOB, {"name": "nightly", "properties": shown})

    code, out, err = muster("job", verb, "nightly")

    assert (code, err) == (0, "")
    assert a_job.sent("PATCH", JOB) == [{"properties": sent}]
    assert a_job.sent("PUT", JOB) == []
    assert out.splitlines() == [
        "name     schedule       enabled  paused  next_run",
        "nightly  0 3 * * * UTC  true     true    2031-01-01T03:00:00Z",
    ]


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (
            ("--cron", "0 4 * * *", "--overlap", "allow"),
            {"type": "Recurring", "cron": "0 4 * * *", "timeZone": "UTC", "enabled": True, "overlap": "allow"},
        ),
        (("--none",), {}),
    ],
)  # fmt: skip
def test_the_schedule_of_a_job_is_replaced(muster, a_job, words, sent):
    a_job.on("PUT", f"{JOB}/schedule", {})

    code, out, err = muster("job", "schedule", "nightly", *words)

    assert (code, err) == (0, "")
    assert a_job.sent("PUT", f"{JOB}/schedule") == [sent]
    assert a_job.sent("PUT", JOB) == []
    assert out.splitlines()[1].split() == [
        "nightly", "0", "3", "*", "*", "*", "UTC", "true", "false", "2031-01-01T03:00:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", [(), ("--overlap", "allow"), ("--none", "--every", "1h", "--now")]
)
def test_a_new_schedule_is_one_or_none(muster, a_job, words):
    code, _, err = muster("job", "schedule", "nightly", *words)

    assert (code, "--cron, --every, --at and --none" in err) == (1, True)
    assert a_job.sent("PUT", f"{JOB}/schedule") == []


def test_a_job_without_a_schedule_is_not_enabled(muster, a_job):
    never = {"type": "Once", "startTime": "0001-01-01T00:00:00Z", "enabled": False}
    a_job.on("GET", JOB, {"name": "nightly", "properties": {"schedule": never}})

    code, _, err = muster("job", "enable", "nightly")

    assert (code, "muster job start nightly" in err) == (1, True)
    assert a_job.sent("PATCH", JOB) == []


def test_a_guard_is_of_the_run_or_of_the_job(muster, a_job):
    made = ("job", "create", "nightly", "-g", "prod", "-c", "select 1", "--guard")

    assert muster(*made, "job")[0] == 0
    assert the_step(a_job)["guard"] == "job"
    code, _, err = muster(*made, "ever")
    assert (code, "choose from run, job" in err) == (1, True)


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ((), {}),
        (("--skip-if-holds",), {"skipIfHolds": True}),
        (("--verify-expect", "EMPTY"), {"expect": "empty"}),
        (("--verify-value", "7"), {"expect": "value", "value": "7"}),
    ],
)
def test_a_step_is_verified_by_a_query(muster, a_job, more, sent):
    made = ("job", "create", "nightly", "-g", "prod", "-c", "select 1", "--verify", "table t")

    assert muster(*made, *more)[0] == 0
    assert the_step(a_job)["verify"] == {"sql": "table t", **sent}


@pytest.mark.parametrize(
    "more",
    [
        ("--skip-if-holds",),
        ("--verify-value", "7"),
        ("--verify", "table t", "--verify-value", "7", "--verify-expect", "true"),
    ],
)
def test_options_of_a_query_need_one_and_agree(muster, a_job, more):
    code, _, err = muster("job", "create", "nightly", "-g", "prod", "-c", "select 1", *more)

    assert (code, "--verify" in err) == (1, True)
    assert a_job.sent("PUT", JOB) == []


OUTPUT = ("--output-server", "o", "--output-database", "d", "--output-table", "t")


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ((), {}),
        (("--output-schema", "S", "--output-include-target"), {"schemaName": "S", "includeTarget": True}),
        (("--output-on-mismatch", "ADDCOLUMN"), {"onMismatch": "addColumn"}),
        (("--output-credential", "w"), {"credential": f"{ACCOUNT}/credentials/w"}),
    ],
)  # fmt: skip
def test_the_rows_of_a_step_go_to_a_table(muster, a_job, more, sent):
    made = ("job", "create", "nightly", "-g", "prod", "-c", "select 1")

    assert muster(*made, *OUTPUT, *more)[0] == 0

    place = {"serverName": "o", "databaseName": "d", "tableName": "t"}
    assert the_step(a_job)["output"] == place | sent


def test_the_example_of_an_output_is_the_one_of_rest(muster, a_job):
    page = (Path(__file__).parents[3] / "docs/reference/output.md").read_text("utf-8")
    (command,) = re.findall(r"```sh\nmuster (.*?)\n```", page)
    (document,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    words = shlex.split(command)

    code, _, err = muster(
        *("nightly" if word == "sizes" and at == 2 else word for at, word in enumerate(words))
    )

    assert (code, err) == (0, "")
    assert the_step(a_job)["output"] == json.loads(document)["output"]


@pytest.mark.parametrize("more", [OUTPUT[:4], ("--output-include-target",)])
def test_an_output_names_its_place(muster, a_job, more):
    code, _, err = muster("job", "create", "nightly", "-g", "prod", "-c", "select 1", *more)

    assert (code, "--output-table" in err) == (1, True)
    assert a_job.sent("PUT", JOB) == []


def test_what_is_not_said_is_not_sent(muster, a_job):
    muster("job", "create", "nightly", "-g", "prod", "-c", "select 1")

    step = {"name": "main", "targetGroup": GROUP, "action": {"value": "select 1"}}
    assert a_job.sent("PUT", JOB) == [{"properties": {"schedule": {}, "steps": [step]}}]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--every", "PT1H", "--now"], {"type": "Recurring", "interval": "PT1H"}),
        (["--every", "P1D", "--start", "2031-01-01T02:00:00Z", "--disabled"],
         {"type": "Recurring", "interval": "P1D", "startTime": "2031-01-01T02:00:00+00:00", "enabled": False}),
        (["--at", "2031-07-01T02:00", "--time-zone", "Europe/Berlin"], {"type": "Once", "startTime": "2031-07-01T02:00:00+02:00"}),
        (["--cron", "* * * * *"], {"type": "Recurring", "cron": "* * * * *", "timeZone": "UTC"}),
    ],
)  # fmt: skip
def test_each_way_to_say_when(muster, a_job, words, expected):
    assert muster("job", "create", "nightly", "-g", "prod", "-c", "select 1", *words)[0] == 0

    assert a_job.sent("PUT", JOB)[-1]["properties"]["schedule"] == {"enabled": True} | expected


def test_a_replaced_job_has_exactly_the_step_that_was_named(muster, a_job):
    code, _, _ = muster(
        "job", "create", "nightly", "-g", "prod", "-c", "select 2", "--step", "other", "--replace"
    )

    assert code == 0 and the_step(a_job)["name"] == "other"
    (put,) = [each for each in a_job.requests if each.method != "GET"]
    assert (put.method, put.url.path) == ("PUT", JOB) and "if-none-match" not in put.headers


def test_a_schedule_that_a_replacement_takes_away_is_told(muster, a_job):
    words = ("job", "create", "nightly", "-g", "prod", "-c", "select 1", "--replace")

    code, _, err = muster(*words)

    assert (code, "removed: 0 3 * * * UTC" in err) == (0, True)
    assert muster(*words, "--every", "PT1H", "--now")[2] == ""


def test_run_attempts_and_auto_disable_that_a_replacement_takes_away_are_shown(muster, a_job):
    rules = {"runAttempts": {"enabled": True}, "autoDisable": {"failures": 3}}
    a_job.on("GET", JOB, {"name": "nightly", "properties": rules})
    words = ("job", "create", "nightly", "-g", "prod", "-c", "select 1", "--replace")

    _, _, err = muster(*words, "--auto-disable", "3/1")

    assert 'had runAttempts, which was removed: {"enabled": true}. --run-attempts sets it.' in err
    assert "autoDisable" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["--at", "2031-07-01T02:00"],
        ["--at", "tomorrow"],
        ["--at", "2031-07-01T02:00", "--time-zone", "Mars/Olympus"],
        ["--time-zone", "UTC"],
        ["--every", "P1D", "--time-zone", "Europe/Berlin"],
        ["--cron", "x", "--every", "y"],
        ["--overlap", "sometimes"],
        ["-f", "file"],
    ],
)
def test_a_when_that_is_not_clear_is_refused_here(muster, a_job, words):
    assert muster("job", "create", "nightly", "-g", "prod", "-c", "select 1", *words)[0] == 1
    assert a_job.sent("PUT", JOB) == []


def test_a_job_for_a_group_that_is_not_there_is_not_found(muster, a_job):
    message = "Target group 'prod' was not found."
    field = "properties.steps[0].targetGroup"
    a_job.on("PUT", JOB, refusal(400, "InvalidParameterValue", message, field))
    a_job.on("GET", f"{ACCOUNT}/targetGroups", listed({"name": "production"}))

    code, _, err = muster("job", "create", "nightly", "-g", "prod", "-c", "select 1")

    assert (code, err) == (6, "muster: there is no target group 'prod'; did you mean production?\n")


def test_jobs_are_shown_and_listed(muster, a_job):
    document = json.loads(muster("job", "show", "nightly", "-o", "json")[1])

    assert document["name"] == "nightly" and document["steps"][0]["name"] == "main"
    assert muster("job", "show", "nightly", "-o", "tsv")[1].splitlines() == [
        "step\tname\tgroup\tcredential\tscript",
        "1\tmain\tprod\t\tselect 1",
    ]
    assert (
        muster("job", "list", "-o", "tsv")[1].splitlines()[1]
        == "nightly\t1\t0 3 * * * UTC\ttrue\tfalse\t\t\t\t"
    )


def test_a_list_of_jobs_has_the_last_and_the_next_run_of_each(muster, rest):
    last = {
        "jobExecutionId": RUN_ID,
        "lifecycle": "WaitingForChildJobExecutions",
        "createTime": "2031-01-01T03:00:00.5Z",
    }
    properties = {"version": 1, "lastRun": last, "nextRunTime": "2031-01-02T03:00:00Z"}
    rest.on("GET", f"{ACCOUNT}/jobs", listed({"name": "nightly", "properties": properties}))

    people, scripts = muster("job", "list")[1], muster("job", "list", "-o", "tsv")[1]

    row = people.splitlines()[1].split()
    assert row[-3:] == ["running", "2031-01-01T03:00:00Z", "2031-01-02T03:00:00Z"]
    assert "\tWaitingForChildJobExecutions\t2031-01-01T03:00:00Z\t2031-01-02T03:00:00Z\t" in scripts


def a_schedule(rest, upcoming=(), **said):
    schedule = {"type": "Recurring", "interval": "PT1H", "enabled": True, "overlap": "queueOne"}
    paused = said.pop("paused", False)
    properties = {"version": 1, "schedule": schedule | said, "paused": paused}
    rest.on("GET", JOB, {"name": "nightly", "properties": properties})
    rest.on("GET", f"{JOB}/nextRuns", listed(*({"time": each} for each in upcoming)))


def test_a_job_is_shown_with_its_next_run_and_its_overlap(muster, a_job):
    a_schedule(a_job, ["2031-01-01T03:00:00.25Z"])

    out = muster("job", "show", "nightly")[1]

    assert out.splitlines()[2:4] == ["next run: 2031-01-01T03:00:00Z", "overlap: queueOne"]
    assert a_job.asked(f"{JOB}/nextRuns") == [{"$top": "1"}]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"enabled": False}, "next run: none, the schedule is disabled"),
        ({"paused": True}, "next run: none while the job is paused"),
        (
            {"type": "Once", "startTime": "2001-01-01T00:00:00Z"},
            "next run: as soon as it can begin",
        ),
    ],
)
def test_a_job_without_a_next_run_says_why(muster, a_job, said, told):
    a_schedule(a_job, **said)

    assert told in muster("job", "show", "nightly")[1].splitlines()


def test_a_start_tells_the_run(muster, a_job):
    a_job.on("POST", f"{JOB}/start", a_run())

    assert muster("job", "start", "nightly", "-o", "tsv") == (
        0,
        f"job\trun\tlifecycle\nnightly\t{RUN_ID}\tCreated\n",
        "",
    )


def test_a_start_that_waits_exits_as_the_run_ends(muster, a_job):
    a_job.on("POST", f"{JOB}/start", a_run())
    a_job.on("GET", f"{RUN}/summary", a_summary("Created"), a_summary("Failed", Failed=2))

    assert muster("job", "start", "nightly", "--wait")[0] == 3


def test_stop_cancels_what_is_not_over(muster, a_job):
    a_job.on("GET", f"{JOB}/executions", listed(a_run()))
    a_job.on("POST", f"{RUN}/cancel", {})

    code, out, _ = muster("job", "stop", "nightly", "--reason", "r", "-o", "tsv")

    assert (code, out) == (0, f"job\tcancelled_run\nnightly\t{RUN_ID}\n")
    assert a_job.asked(f"{JOB}/executions") == [{"isActive": "true"}]
    assert a_job.sent("POST", f"{RUN}/cancel") == [{"reason": "r"}]


def test_a_delete_needs_a_yes(muster, a_job, terminal):
    a_job.on("DELETE", JOB, {})

    assert muster("job", "delete", "nightly")[0] == 1
    assert muster("job", "delete", "nightly", "--yes", "--force")[0] == 0
    assert a_job.asked(JOB)[-1] == {"force": "true"}
    for typed, code in (("n\n", 1), ("y\n", 0)):
        terminal(typed)
        assert cli.main(["job", "delete", "nightly"]) == code
    assert len(a_job.sent("DELETE", JOB)) == 2


@pytest.mark.parametrize(
    ("words", "along"),
    [
        ((), "its history is hidden"),
        (("--purge-history",), "its runs and their history are deleted for ever"),
        (("--force",), "its history is hidden, runs that go on are cancelled"),
    ],
)
def test_a_delete_of_a_job_asks_with_what_goes_along(muster, a_job, terminal, words, along):
    streams = terminal("n\n")

    assert cli.main(["job", "delete", "nightly", *words]) == 1
    assert f"Delete the job 'nightly': {along}? [y/N] " in streams["stderr"].getvalue()
    assert a_job.sent("DELETE", JOB) == []


def test_a_delete_of_nothing_is_not_found(muster, a_job):
    import httpx

    a_job.on("DELETE", JOB, httpx.Response(204))

    assert muster("job", "delete", "nightly", "--yes")[0] == 6


def test_a_server_is_checked(muster, rest):
    rest.on("POST", f"{SERVER}/check", {"reachable": True})

    code, out, err = muster("server", "check", "fleet-1")

    assert (code, err) == (0, "")
    assert out.splitlines()[1].split() == ["fleet-1", "reachable"]


def test_one_that_can_not_be_reached_says_why_and_fails(muster, rest):
    why = "The server db1 can't be reached: its name can't be resolved."
    rest.on(
        "POST", f"{SERVER}/check",
        {"reachable": False, "code": "TargetUnreachable", "message": why},
    )  # fmt: skip

    code, out, _ = muster("server", "check", "fleet-1")

    assert code == 2
    assert f"TargetUnreachable: {why}" in out


@pytest.mark.parametrize(
    ("message", "way"),
    [
        ('Job "nightly" is paused.', "muster job resume nightly"),
        ('Job "nightly" has no steps.', "muster step add nightly"),
    ],
)
def test_a_start_that_is_refused_names_the_command_that_helps(muster, rest, message, way):
    rest.on("POST", f"{JOB}/start", refusal(400, "ElasticJobsOperationFailed", message, "job_name"))

    code, _, err = muster("job", "start", "nightly")

    assert (code, f"{message.rstrip('.')}: {way}" in err) == (1, True)


@pytest.mark.parametrize("words", [("export", "webhook"), ("job", "export", "nightly")])
def test_an_export_leaves_a_file_that_is_there_as_it_is(muster, a_job, tmp_path, words):
    file = tmp_path / "kept.yaml"
    a_job.on("GET", f"{ACCOUNT}/webhooks", listed())
    to = ("--to", str(file))

    assert muster(*words, *to) == (0, "", "")
    file.write_text("mine")
    why = f"muster: {file} is there already; --replace writes over it\n"
    assert muster(*words, *to) == (1, "", why)
    assert file.read_text() == "mine"
    assert muster(*words, *to, "--replace") == (0, "", "")
    assert file.read_text() != "mine"
    assert muster(*words, "--replace")[::2] == (1, "muster: --replace needs --to FILE\n")
