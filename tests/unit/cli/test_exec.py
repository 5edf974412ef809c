"""`muster exec`: reads by itself, writes only with the number of targets seen."""

import json

import pytest

from muster.cli import run_watch
from muster.cli import main as cli
from tests.unit.cli.fake_rest import (
    ACCOUNT, RUN_ID, a_cause, a_page, a_run, a_summary, file, listed, refusal, sets, with_files,
)  # fmt: skip

RUN = f"{ACCOUNT}/jobs/adhoc/executions/{RUN_ID}"
QUERIES = f"{ACCOUNT}/queries"
RESOLVE = f"{ACCOUNT}/targetGroups/prod/resolve"
SELECT = ("exec", "-g", "prod", "-c", "select 1")
WRITE = ("exec", "-g", "prod", "-c", "delete from t", "--write")
COLUMNS = ["serverName", "databaseName", "schemaName", "n"]
TARGETS = [
    {"type": "SqlDatabase", "serverName": name, "databaseName": "d"}
    for name in ("eu1", "eu1", "us1")
]


@pytest.fixture(autouse=True)
def exec_replies(rest):
    rest.on("POST", QUERIES, a_run(job="adhoc"))
    rest.on(
        "POST",
        RESOLVE,
        {"count": 3, "truncated": False, "targets": TARGETS, "leftOut": [], "unreachable": []},
    )
    rest.on("GET", f"{RUN}/summary", a_summary("Created"), a_summary(Succeeded=2))
    rows = [["eu1", "a", None, 1], ["us1", "b", None, 2]]
    rest.on(
        "GET",
        f"{RUN}/results",
        {"columns": COLUMNS, "rows": rows, "targets": 2, "truncated": False},
    )


def test_a_query_reads_only_and_prints_one_table(muster, rest):
    code, out, err = muster(*SELECT)

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "server  database  n",
        "eu1     a         1",
        "us1     b         2",
        "2 rows from 2 targets.",
        "2 of 2 targets succeeded.",
    ]
    assert rest.sent("POST", QUERIES) == [
        {"targetGroup": "prod", "sql": "select 1", "readOnly": True, "timeoutSeconds": 60}
    ]
    assert rest.sent("POST", RESOLVE) == []


def test_what_is_said_is_sent(muster, rest, tmp_path):
    file = tmp_path / "q.sql"
    file.write_text("select 2")

    muster(
        "exec",
        "-g",
        "prod",
        "-f",
        str(file),
        "--timeout",
        "5m",
        "--max-rows",
        "7",
        "--credential",
        "c",
    )

    assert rest.sent("POST", QUERIES) == [
        {
            "targetGroup": "prod",
            "sql": "select 2",
            "readOnly": True,
            "timeoutSeconds": 300,
            "maxRows": 7,
            "credential": "c",
        }
    ]


def test_failures_are_listed_after_the_table(muster, rest):
    rest.on("GET", f"{RUN}/summary", a_summary("Failed", Succeeded=2, Failed=1))
    rest.on("GET", f"{RUN}/errors", listed(a_cause("42P01", 1, 'relation "t" does not exist')))

    code, out, _ = muster(*SELECT)

    assert code == 2
    assert out.splitlines()[-3:] == [
        "2 of 3 targets succeeded, 1 failed.",
        'failed: 1 × 42P01 relation "t" does not exist (fleet-1/tenant_07)',
        f"1 cause, 1 target. muster run errors {RUN_ID} shows more.",
    ]
    code, out, err = muster(*SELECT, "-o", "tsv")
    assert (code, len(out.splitlines())) == (2, 3) and "42P01" in err
    page = a_page(["eu1", "a", None, 1])
    rest.on("GET", f"{RUN}/results", with_files(page, ndjson=file('{"n":1}\n{"n":2}\n')))
    code, out, err = muster(*SELECT, "-o", "json")
    assert (code, json.loads(out)) == (2, [{"n": 1}, {"n": 2}]) and "42P01" in err


def test_what_was_cut_is_told_beside_the_data(muster, rest):
    rest.on("GET", f"{RUN}/results", a_page(["eu1", "a", None, 1], truncated=True))

    code, out, err = muster(*SELECT, "-o", "tsv")

    assert (code, len(out.splitlines())) == (0, 2)
    assert err == "Some targets returned more rows than are kept.\n"


@pytest.mark.parametrize(("sql", "told"), [("select 1; select 2;", True), ("select 1;", False)])
def test_further_result_sets_are_told(muster, rest, sql, told):
    first, second = a_page(["eu1", "a", None, 1]), a_page(["eu1", "a", None, 2])
    rest.on("GET", f"{RUN}/results", sets(first, second))

    _, _, err = muster("exec", "-g", "prod", "-c", sql, "-o", "tsv")

    more = f"There are further result sets: muster run results {RUN_ID} --set 2\n"
    assert err == (more if told else "")


def test_a_group_without_targets_is_told_as_the_cause(muster, rest):
    what = {"endReason": "NoTargets", "lastMessage": "The target group has no targets."}
    step = {"stepId": 1, "stepName": "query", "lifecycle": "Failed", "counts": {}, **what}
    said = "0 of 1 steps succeeded, 1 failed."
    rest.on("GET", f"{RUN}/summary", a_summary("Failed", steps=[step], lastMessage=said))
    rest.on("GET", f"{RUN}/errors", listed())
    rest.on("GET", f"{RUN}/results", a_page(targets=0))

    code, out, _ = muster(*SELECT)

    assert code == 3
    assert out.splitlines()[:3] == [
        "0 of 1 steps succeeded, 1 failed.",
        "failed: NoTargets The target group has no targets.",
        "  → muster group resolve prod",
    ]


def test_a_missing_credential_of_named_targets_names_the_option_and_the_accounts_default(
    muster, rest
):
    rest.on("GET", f"{RUN}/summary", a_summary("Failed", Failed=1))
    missing = a_cause(None, 1, "No credential is configured for this target.")
    rest.on("GET", f"{RUN}/errors", listed(missing | {"reason": "CredentialMissing"}))

    _, out, _ = muster("exec", "--server", "eu1", "-c", "select 1")

    assert "  → muster exec --credential NAME …\n" in out
    assert "muster account update ACCOUNT --default-credential NAME" in out


def test_a_write_that_was_not_allowed_names_the_option(muster, rest):
    rest.on("GET", f"{RUN}/summary", a_summary("Failed", Failed=1))
    refused = "cannot execute DELETE in a read-only transaction"
    rest.on("GET", f"{RUN}/errors", listed(a_cause("25006", 1, refused)))

    assert "  → muster exec --write …\n" in muster(*SELECT)[1]


def test_a_run_that_reached_no_step_has_no_results_to_ask_for(muster, rest):
    rest.on("GET", f"{RUN}/summary", a_summary("Failed", steps=[]))
    rest.on("GET", f"{RUN}/errors", listed())

    code, out, _ = muster(*SELECT)

    assert code == 3 and "There were no targets." in out
    assert rest.asked(f"{RUN}/results") == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "needs --yes --expect-targets N; the group has 3"),
        (["--yes"], "--yes needs --expect-targets; the group has 3 targets"),
        (["--expect-targets", "3"], "needs --yes --expect-targets N"),
        (
            ["--yes", "--expect-targets", "4"],
            "4 targets were expected, the group has 3: nothing was run",
        ),
    ],
)
def test_a_write_without_a_terminal_is_refused_unless_all_is_said(muster, rest, words, why):
    code, out, err = muster(*WRITE, *words)

    assert (code, out) == (1, "") and why in err
    assert rest.sent("POST", QUERIES) == []


def test_a_write_with_the_right_number_runs(muster, rest):
    assert muster(*WRITE, "--yes", "--expect-targets", "3")[0] == 0
    assert rest.sent("POST", QUERIES)[0]["readOnly"] is False


def test_a_script_without_a_table_tells_how_many_succeeded(muster, rest):
    page = {"columns": COLUMNS[:3], "rows": [], "targets": 2, "truncated": False}
    rest.on("GET", f"{RUN}/results", page)

    code, out, _ = muster(*WRITE, "--yes", "--expect-targets", "3")

    assert (code, out) == (0, "No target returned rows.\n2 of 2 targets succeeded.\n")
    assert muster(*SELECT, "-o", "tsv")[1] == "server\tdatabase\tschema\n"


def test_a_query_checks_the_number_too_when_one_is_said(muster, rest):
    assert muster(*SELECT, "--expect-targets", "2")[0] == 1
    assert muster(*SELECT, "--expect-targets", "3")[0] == 0
    assert len(rest.sent("POST", QUERIES)) == 1


@pytest.mark.parametrize(("typed", "code", "ran"), [("y\n", 0, 1), ("no\n", 1, 0), ("", 1, 0)])
def test_in_a_terminal_the_number_is_shown_and_asked(rest, terminal, typed, code, ran):
    streams = terminal(typed)

    assert cli.main(WRITE) == code

    told = streams["stderr"].getvalue()
    assert "3 targets. eu1 2, us1 1\nRun it on 3 targets and commit? [y/N] " in told
    assert len(rest.sent("POST", QUERIES)) == ran


def test_a_group_that_is_not_there_runs_nothing(muster, rest):
    rest.on("POST", RESOLVE, refusal(404, "ResourceNotFound", "There is no group 'prod'."))
    rest.on("GET", f"{ACCOUNT}/targetGroups", listed())

    assert muster(*WRITE, "--yes", "--expect-targets", "3")[0] == 6
    assert rest.sent("POST", QUERIES) == []


def test_a_group_that_is_not_there_is_not_found_and_told_with_the_nearest(muster, rest):
    message = "targetGroups 'prod' was not found."
    rest.on("POST", QUERIES, refusal(400, "InvalidParameterValue", message, "targetGroup"))
    rest.on("GET", f"{ACCOUNT}/targetGroups", listed({"name": "prod-eu"}, {"name": "x"}))

    code, _, err = muster(*SELECT)

    assert (code, err) == (6, "muster: there is no target group 'prod'; did you mean prod-eu?\n")


def test_another_refusal_is_told_as_it_is(muster, rest):
    rest.on("POST", QUERIES, refusal(400, "InvalidScript", "No script.", "sql"))
    rest.on("GET", f"{ACCOUNT}/targetGroups/prod", {"name": "prod"})

    assert muster(*SELECT)[::2] == (1, "muster: InvalidScript: No script. (sql)\n")


AWAY = {"serverName": "us2", "code": "TargetTimeout", "message": "It did not answer in time."}


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (3, "3 targets were expected, the group has 3 targets, and servers"),
        (0, "3 targets were expected, the group has none, and servers"),
    ],
)
def test_a_write_with_servers_that_were_not_listed_is_refused(muster, rest, count, told):
    found = {"count": count, "targets": TARGETS[:count], "leftOut": [], "unreachable": [AWAY]}
    rest.on("POST", RESOLVE, found)

    code, _, err = muster(*WRITE, "--yes", "--expect-targets", "3")

    assert code == 1 and told in err
    assert "us2 (It did not answer in time); nothing was run\n" in err
    assert rest.sent("POST", QUERIES) == []


def test_in_a_terminal_servers_that_were_not_listed_are_named(rest, terminal):
    found = {"count": 1, "targets": TARGETS[:1], "leftOut": [], "unreachable": [AWAY]}
    rest.on("POST", RESOLVE, found)
    streams = terminal("no\n")

    cli.main(WRITE)

    told = streams["stderr"].getvalue()
    assert "1 target, 1 server unreachable. eu1 1\nNot listed, so not visited: us2 (It" in told
    assert "Run it on 1 target and commit?" in told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("It can't be rolled back: readOnly must be false.", "rolled back: use --write."),
        ("No connection to h: the server does not offer TLS.", "(--ssl-mode disable connects without it)."),
        ("nothing starts until jobs.sp_resume()", "until muster account resume, or jobs.sp_resume() in psql"),
    ],
)  # fmt: skip
def test_what_the_api_advises_is_said_in_words_of_the_command_line(muster, rest, said, told):
    rest.on("POST", QUERIES, refusal(409, "Conflict", said))
    rest.on("GET", f"{ACCOUNT}/targetGroups/prod", {"name": "prod"})

    code, _, err = muster(*SELECT)

    assert code == 1 and told in err


def test_ctrl_c_cancels_what_nobody_else_knows_of(muster, rest, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_watch, "sleep", interrupted)
    rest.on("POST", f"{RUN}/cancel", {})

    code, _, err = muster(*SELECT)

    assert code == 4 and RUN_ID in err
    assert len(rest.sent("POST", f"{RUN}/cancel")) == 1


def test_more_rows_than_are_kept_are_refused_here(muster, rest):
    code, _, err = muster(*SELECT, "--max-rows", "1001")

    assert (code, "at most 1000" in err) == (1, True)
    assert rest.sent("POST", QUERIES) == []


def test_what_targets_said_stands_beside_the_table(muster, rest):
    where = {"serverName": "eu1", "databaseName": "a", "stepName": "main"}
    notices = [{"severity": "NOTICE", "message": "hello"}]
    rest.on("GET", f"{RUN}/messages", listed({**where, "notices": notices}))

    code, out, err = muster(*SELECT)

    assert (code, err) == (0, "eu1/a: NOTICE: hello\n")
    assert "hello" not in out


def test_a_write_shows_what_it_changed(muster, rest):
    page = {"columns": COLUMNS[:3], "rows": [], "targets": 2, "truncated": False}
    rest.on("GET", f"{RUN}/results", page)
    tags = [{"statement": 1, "tag": "DELETE 2", "rows": 2}]
    where = ({"serverName": "eu1", "databaseName": name} for name in "ab")
    rest.on("GET", f"{RUN}/commandTags", listed(*({**each, "commandTags": tags} for each in where)))

    _, out, _ = muster(*WRITE, "--yes", "--expect-targets", "3")

    assert out.splitlines() == [
        "server  database  statement  tag       rows",
        "eu1     a                 1  DELETE 2     2",
        "eu1     b                 1  DELETE 2     2",
        "DELETE 4 on 2 targets.",
        "2 of 2 targets succeeded.",
    ]
