"""`muster apply -f`: an account becomes what the files state, and a second apply writes nothing."""

import asyncio

import pytest

from muster.cli.client import Api, Refused, connect
from muster.cli.declared.plan import plan
from muster.cli.declared.reader import read
from muster.cli.declared.write import write
from tests.support import arm
from tests.support.declared_files import start_files
from tests.support.jobs_fixture import ACCOUNT

pytestmark = pytest.mark.newest

ALL = """\
kind: webhook
name: ops
url: https://alerts.example.org/muster
events: [recovered, failed]
jobs: [nightly]
secretEnv: OPS_SECRET
---
kind: job
name: nightly
description: d
labels: {team: data}
retentionDays: 9
schedule: {enabled: true, cron: "30 3 * * *", timeZone: Europe/Berlin, misfire: {policy: skip}}
runAttempts: {enabled: true, backoffSeconds: [10, 30]}
autoDisable: {failures: 3, days: 0.5}
steps:
  - name: first
    targetGroup: nested
    credential: login
    action:
      value: |
        select 1;
        select 'ä'
    executionOptions: {timeoutSeconds: 600, retryIntervalBackoffMultiplier: 1.5}
    settings: {lockTimeoutSeconds: 2.5, parameters: {"app.x": "1"}}
    rollout: {waves: [1, "10%"], haltAfterFailures: "5%", pauseBetween: PT5M}
    verify: {sql: select 1, expect: value, value: 1}
    guard: job
    output: {serverName: srv, databaseName: control_acc, tableName: t, credential: login}
  - name: second
    targetGroup: tenants
    commandFile: sql/second.sql
    onFailure: continue
    jitter: 0.25
    retryOn: ["40001"]
---
kind: group
name: nested
members:
  - {type: TargetGroup, targetGroup: tenants}
---
kind: group
name: tenants
members:
  - {type: SqlServer, serverName: srv, refreshCredential: login, labels: "tier in (gold)"}
  - {type: SqlDatabase, serverName: srv, databaseName: "x_*", membershipType: Exclude}
---
kind: credential
name: login
username: u
passwordFile: secrets/login
servers: [srv]
"""
SECRET = {"OPS_SECRET": "a secret of at least 16 characters"}


@pytest.fixture
async def files(settings, targets, tmp_path):
    async with start_files(settings, targets, tmp_path) as made:
        made.write("all.yaml", ALL)
        made.write("sql/second.sql", "select 2\n")
        made.write("secrets/login", "hush\n")
        yield made


@pytest.fixture
async def applied(files):
    code, _, err = await files.muster("apply", "-f", ".", **SECRET)
    assert (code, err) == (0, "")
    return files


async def results(files, *words, **environment):
    code, out, err = await files.muster(
        "apply", "-f", "all.yaml", "-o", "tsv", *words, **environment
    )
    return code, [tuple(line.split("\t")[1:]) for line in out.splitlines()[1:]], err


def change(files, *pairs):
    text = (files.folder / "all.yaml").read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    files.write("all.yaml", text)


async def test_everything_is_created_in_the_order_of_what_needs_what(files):
    code, rows, err = await results(files, **SECRET)

    assert (code, err) == (0, "")
    assert rows == [(name, "created") for name in ("login", "tenants", "nested", "nightly", "ops")]
    job = (await files.api.seen("jobs/nightly"))["properties"]
    assert job["schedule"]["enabled"] and job["labels"] == {
        "team": "data",
        "muster.applied": "true",
    }
    steps = (await files.api.seen("jobs/nightly/steps"))["value"]
    assert [each["properties"]["action"]["value"] for each in steps] == [
        "select 1;\nselect 'ä'\n",
        "select 2\n",
    ]
    assert len((await files.api.seen("jobs/nightly/versions"))["value"]) == 2, (
        "0 and the one with all steps"
    )


async def test_a_second_apply_writes_nothing(applied):
    before, version = await applied.writes(), await applied.api.seen("jobs/nightly")

    code, rows, err = await results(applied)

    assert (code, err, {each[-1] for each in rows}) == (0, "", {"unchanged"})
    assert await applied.muster("diff", "-f", ".") == (0, "", "")
    assert await applied.writes() == before, "not one command reached the control database"
    assert await applied.api.seen("jobs/nightly") == version


async def test_a_change_of_several_steps_is_one_version_and_leaves_the_rest(applied):
    await applied.api.patch("jobs/nightly/steps/first", {"idempotent": True})
    await applied.api.patch("jobs/nightly", {"owner": "ops"})
    versions = len((await applied.api.seen("jobs/nightly/versions"))["value"])
    change(
        applied, ("timeoutSeconds: 600", "timeoutSeconds: 601"), ("name: second", "name: renamed")
    )

    code, rows, _ = await results(applied)

    assert code == 0 and ("nightly", "updated") in rows and ("tenants", "unchanged") in rows
    steps = (await applied.api.seen("jobs/nightly/steps"))["value"]
    assert [each["name"] for each in steps] == ["first", "renamed"]
    assert steps[0]["properties"]["executionOptions"]["timeoutSeconds"] == 601
    assert steps[0]["properties"]["idempotent"], "what no file states stays"
    assert (await applied.api.seen("jobs/nightly"))["properties"]["owner"] == "ops"
    assert len((await applied.api.seen("jobs/nightly/versions"))["value"]) == versions + 1


async def test_each_kind_is_updated(applied):
    change(applied, ("username: u", "username: other"), ('"x_*"', '"y_*"'), ("[recovered, failed]", "[late]"),
           ("labels: {team: data}", "labels: {}"), ("runAttempts: {enabled: true, backoffSeconds: [10, 30]}", "runAttempts: null"))  # fmt: skip

    code, rows, err = await results(applied, **SECRET)

    assert (code, err) == (0, "")
    assert dict(rows) == {"login": "updated", "tenants": "updated", "nested": "unchanged", "nightly": "updated", "ops": "updated"}  # fmt: skip
    assert (await applied.api.seen("credentials/login"))["properties"] == {"username": "other", "servers": ["srv"], "lapsedServers": []}  # fmt: skip
    job = (await applied.api.seen("jobs/nightly"))["properties"]
    assert job["labels"] == {"muster.applied": "true"} and "runAttempts" not in job
    assert await applied.muster("diff", "-f", ".") == (0, "", "")


async def test_a_dry_run_shows_the_difference_and_writes_nothing(files):
    before = await files.writes()

    code, out, err = await files.muster("apply", "-f", ".", "--dry-run")

    assert (code, err) == (0, "")
    assert out == (await files.muster("diff", "-f", "."))[1] and "+kind: webhook" in out
    assert await files.writes() == before


async def test_a_password_is_sent_again_when_asked(applied):
    query = "select secret from jobs_internal.credential"
    old = await applied.api.control(query)
    applied.write("secrets/login", "another\n")

    assert {each[-1] for each in (await results(applied))[1]} == {"unchanged"}
    assert await applied.api.control(query) == old
    code, rows, _ = await results(applied, "--update-secrets", **SECRET)

    assert (code, dict(rows)["login"], dict(rows)["ops"], dict(rows)["nightly"]) == (
        0,
        "updated",
        "updated",
        "unchanged",
    )
    assert await applied.api.control(query) != old


async def test_a_secret_that_is_missing_shows_before_the_first_write(files):
    code, out, err = await files.muster("apply", "-f", ".")

    assert (code, out) == (1, "")
    assert err == "muster: all.yaml:6: the environment has no variable OPS_SECRET\n"
    assert (await files.api.seen("credentials"))["value"] == []


async def test_a_secret_in_a_file_is_refused_and_nothing_is_written(files):
    change(files, ("passwordFile: secrets/login", "password: hush-hush"))

    code, out, err = await files.muster("apply", "-f", ".", **SECRET)

    assert (code, out) == (1, "")
    assert (
        "all.yaml:51: password: a secret does not belong in a file" in err
        and "hush-hush" not in err
    )
    assert (await files.api.seen("targetGroups"))["value"] == []


async def test_a_refusal_says_what_was_applied_and_where_and_a_second_apply_continues(files):
    change(files, ("guard: job", "guard: job\n    transaction: none"))

    code, out, err = await files.muster("apply", "-f", "all.yaml", **SECRET)

    assert code == 1
    assert [line.split()[1:] for line in out.splitlines()[1:6]] == [
        ["login", "created"], ["tenants", "created"], ["nested", "created"], ["nightly", "failed"], ["ops", "not", "applied"],
    ]  # fmt: skip
    assert "all.yaml:28: job nightly: Needs a script that writes" in err
    assert (await files.api.get("jobs/nightly")).status_code == 404, (
        "a job is made with all its steps or not at all"
    )
    change(files, ("\n    transaction: none", ""))
    _, rows, _ = await results(files, **SECRET)
    assert [each[-1] for each in rows] == ["unchanged"] * 3 + ["created"] * 2


async def test_a_schedule_that_has_started_its_job_is_not_started_again(files):
    once = 'kind: job\nname: once\nschedule: {type: Once, enabled: true, startTime: "2031-01-01T01:00:00+01:00"}\nsteps: []\n'
    files.write("all.yaml", once)
    assert (await results(files))[1] == [("once", "created")]
    await files.api.patch("jobs/once", {"schedule": {"enabled": False}})  # as the engine does it

    assert (await results(files))[1] == [("once", "unchanged")]
    files.write("all.yaml", once.replace("2031-01-01T01", "2032-01-01T01"))
    assert (await results(files))[1] == [("once", "updated")]
    assert (await files.api.seen("jobs/once"))["properties"]["schedule"]["enabled"]


async def test_options_without_effect_are_refused(files):
    assert await files.muster("apply", "-f", ".", "--yes") == (
        1, "", "muster: --yes is about deleting: it needs --prune or --prune-all\n",
    )  # fmt: skip
    assert await files.muster("apply", "-f", ".", "--dry-run", "-o", "json") == (
        1, "", "muster: --dry-run prints a diff: leave -o out\n",
    )  # fmt: skip


WRITERS = {  # what somebody else does between the comparison and the write
    "nightly": ("jobs/nightly/steps/second", "patch", {"idempotent": True}),
    "tenants": ("targetGroups/tenants", "put", {"properties": {"members": []}}),
    "login": ("credentials/login", "put", {"properties": {"username": "theirs"}}),
    "ops": ("webhooks/ops", "put", {"properties": {"url": "https://theirs.example.org/", "events": ["late"]}}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
async def test_what_was_changed_since_it_was_compared_is_left_as_it_is(applied, name, monkeypatch):
    monkeypatch.setenv("OPS_SECRET", SECRET["OPS_SECRET"])
    path, method, body = WRITERS[name]
    change(applied, ("timeoutSeconds: 600", "timeoutSeconds: 601"), ('"x_*"', '"y_*"'), ("username: u", "username: other"),
           ("[recovered, failed]", "[failed]"))  # fmt: skip
    changes = await asyncio.to_thread(planned, applied)
    await (applied.api.patch(path, body) if method == "patch" else applied.api.made(path, body))
    theirs = await applied.api.seen(path)

    (mine,) = [each for each in changes if each.name == name]
    with pytest.raises(Refused, match=f"{name} was changed since it was compared"):
        await asyncio.to_thread(written, applied, mine)

    assert await applied.api.seen(path) == theirs


async def test_what_was_created_since_is_left_as_it_is(files):
    changes = await asyncio.to_thread(planned, files)
    await files.api.made(
        "credentials/login", {"properties": {"username": "theirs", "password": "p"}}
    )

    with pytest.raises(Refused, match="login was changed since"):
        await asyncio.to_thread(written, files, changes[0])

    assert (await files.api.seen("credentials/login"))["properties"]["username"] == "theirs"


def planned(files):
    with connect(files.url, arm.TOKEN) as http:
        return plan(Api(http), ACCOUNT, read([str(files.folder / "all.yaml")]))


def written(files, mine):
    with connect(files.url, arm.TOKEN) as http:
        write(Api(http), mine)
