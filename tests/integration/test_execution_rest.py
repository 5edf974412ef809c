"""What is told about executions over REST: rows are written as an engine would; no engine moves."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from tests.support import principals
from tests.support import arm
from tests.support.executions import a_job, end, some_targets
from tests.support.jobs_fixture import ACCOUNT, SERVER, SQL, start_jobs_api, ref
from tests.support.outcomes import a_planned_run, a_set, an_engine, ran
from workflows import reports
from workflows.roles import CONTRIBUTOR, JOB_OPERATOR, READER

pytestmark = [pytest.mark.newest, pytest.mark.deep]

CAUSE = {
    "sqlstate": "42P01", "message": 'relation "a" does not exist', "hint": "Make it.",
    "error_fingerprint": "f-missing", "end_reason": "StatementFailed",
}  # fmt: skip


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


@pytest.fixture
async def owner(jobs_api):
    async with an_engine(jobs_api) as session:
        yield session


@pytest.fixture
async def job(owner):
    return await a_job(owner, "nightly", steps=2)


def problem(answer):
    return answer.status_code, arm.error(answer)


def wrong_field(answer):
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["target"]


def at(run, *more):
    return "/".join(["jobs/nightly/executions", str(run), *map(str, more)])


async def ids(owner, run, step=1):
    """The targets of a step by ordinal."""
    rows = await owner.fetch(
        "select d.ordinal, d.target_id from jobs_internal.snapshot_target d"
        "  join jobs_internal.step_execution s using (snapshot_id)"
        " where s.job_execution_id = $1 and s.step_id = $2",
        run,
        step,
    )
    return {row["ordinal"]: row["target_id"] for row in rows}


async def a_caller(jobs_api, *grants):
    """A client with these roles: pairs of scope and role."""
    name = f"t{uuid4().hex[:8]}"
    made = (
        await arm.put(jobs_api.call, f"{principals.AUTHORIZATION}/serviceTokens/{name}", {})
    ).json()
    token = made["properties"]
    for scope, role in grants:
        await principals.grant(jobs_api.call, scope, token["principalId"], role.id)
    return replace(jobs_api, call=arm.calling(jobs_api.app, token["token"]))


async def test_a_summary_counts_by_lifecycle_step_server_and_reason(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 5)
    await ran(owner, run, 1, "Succeeded")
    await ran(owner, run, 2, "Failed", **CAUSE)
    await ran(owner, run, 3, "Failed", target="WaitingForRetry", **CAUSE)
    await ran(owner, run, 4, "InProgress")

    shown = await jobs_api.seen(at(run, "summary"))

    counts = {"Succeeded": 1, "Failed": 1, "WaitingForRetry": 1, "InProgress": 1, "Created": 1}
    assert (shown["counts"], shown["total"], shown["done"]) == (counts, 5, 2)
    assert (shown["jobName"], shown["jobExecutionId"], shown["lifecycle"]) == (
        "nightly", str(run), "Created",
    )  # fmt: skip
    (step,) = shown["steps"]
    assert (step["stepId"], step["stepName"], step["lifecycle"]) == (
        1, "step1", "WaitingForChildJobExecutions",
    )  # fmt: skip
    assert (step["counts"], step["total"], step["done"]) == (counts, 5, 2)
    assert [each["serverName"] for each in shown["byServer"]] == ["s2", "s1", "s3", "s4", "s5"]
    assert shown["byServer"][0] == {"serverName": "s2", "counts": {"Failed": 1}, "total": 1}
    assert shown["byReason"] == [
        {"reason": "Retry", "count": 1},
        {"reason": "StatementFailed", "count": 1},
    ]
    assert shown["ratePerSecond"] > 0


async def test_a_run_without_targets_has_a_summary_too(jobs_api, job):
    run = (await jobs_api.post("jobs/nightly/start")).json()["name"]

    shown = await jobs_api.seen(at(run, "summary"))

    assert (shown["counts"], shown["total"], shown["done"]) == ({}, 0, 0)
    assert (shown["steps"], shown["byServer"], shown["byReason"]) == ([], [], [])
    assert shown["ratePerSecond"] == 0
    assert "etaSeconds" not in shown


async def test_a_summary_is_not_sent_again_until_something_moved(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 2)
    url = jobs_api.url(at(run, "summary"))

    async def asked(tag):
        return await jobs_api.call.get(url, params=SQL, headers={"If-None-Match": tag})

    first = (await jobs_api.get(at(run, "summary"))).headers["etag"]
    same = await asked(first)
    await ran(owner, run, 1, "Succeeded")
    moved = await asked(first)

    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first)
    assert moved.status_code == 200
    assert (await asked(moved.headers["etag"])).status_code == 304
    await owner.execute(
        "update jobs_internal.step_execution set last_message = 'x' where job_execution_id = $1",
        run,
    )
    assert (await asked(moved.headers["etag"])).status_code == 200


async def test_a_summary_of_what_is_over_tells_the_mean_pace(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 3)
    await end(owner, run)
    await owner.execute(
        "update jobs_internal.job_execution set start_time = end_time - interval '10 s'"
        " where job_execution_id = $1",
        run,
    )

    shown = await jobs_api.seen(at(run, "summary"))

    assert (shown["done"], shown["ratePerSecond"]) == (3, 0.3)
    assert "etaSeconds" not in shown


@pytest.mark.parametrize(("position", "place"), [(1, (1, 1)), (8, (1, 8)), (11, (2, 2)), (0, None)])
async def test_a_cause_has_its_place_in_the_script(jobs_api, owner, job, position, place):
    script = "select 1\n, s"
    await owner.execute("update jobs_internal.target_group set name = 'everything'")
    changed = "select jobs.sp_update_jobstep('nightly', step_id => 1, command => $1)"
    await owner.execute(changed, script)
    run = await a_planned_run(owner, job, 2)
    for ordinal in (1, 2):
        await ran(owner, run, ordinal, "Failed", **CAUSE, error_position=position or None)

    [cause] = (await jobs_api.seen(at(run, "errors")))["value"]

    assert cause["count"] == 2
    assert (cause["line"], cause["column"]) == place if place else "line" not in cause


async def test_equal_causes_stand_together_the_most_frequent_first(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 16)
    other = {"error_fingerprint": "f-lock", "sqlstate": "55P03", "end_reason": "LockTimeout"}
    for ordinal in range(1, 13):
        await ran(owner, run, ordinal, "Failed", **CAUSE)
    await ran(owner, run, 13, "Failed", target="WaitingForRetry", message="locked", **other)
    await ran(owner, run, 13, "Created", attempt=2)
    await ran(owner, run, 14, "Failed", target="WaitingForRetry", **CAUSE)
    await ran(owner, run, 14, "Failed", attempt=2, message="locked", **other)
    await owner.execute(
        "update jobs_internal.target_execution set lifecycle = 'TimedOut', end_time = now(),"
        " end_reason = 'ServerFull', last_message = 'no room' where ordinal = 15"
    )
    await ran(owner, run, 16, "Succeeded")

    value = (await jobs_api.seen(at(run, "errors")))["value"]

    assert [(e.get("fingerprint"), e["count"], e["retrying"]) for e in value] == [
        ("f-missing", 12, 0), ("f-lock", 2, 1), (None, 1, 0),
    ]  # fmt: skip
    missing, locked, full = value
    assert {name: missing[name] for name in ("sqlstate", "reason", "message", "hint")} == {
        "sqlstate": "42P01", "reason": "StatementFailed",
        "message": 'relation "a" does not exist', "hint": "Make it.",
    }  # fmt: skip
    assert len(missing["targets"]) == 10
    assert missing["targets"][0] == {
        "stepName": "step1", "targetId": str((await ids(owner, run))[1]), "serverName": "s1",
        "databaseName": "db1", "attempts": 1,
    }  # fmt: skip
    assert [each["attempts"] for each in locked["targets"]] == [1, 2]
    assert (full["reason"], full["message"]) == ("ServerFull", "no room")
    assert "line" not in missing and "column" not in missing
    page = await jobs_api.seen(at(run, "errors"), __top="2")
    rest = (await jobs_api.call.get(page["nextLink"])).json()
    assert (page["value"] + rest["value"], "nextLink" in rest) == (value, False)


async def test_what_ended_otherwise_than_by_its_last_error_tells_both(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 3)
    for ordinal in (1, 2):
        await ran(owner, run, ordinal, "Failed", target="WaitingForRetry", **CAUSE)
    await owner.execute(
        "update jobs_internal.target_execution set start_time = start_time - interval '2 days'"
        " where ordinal = 1"
    )

    await owner.fetch("select jobs_internal.time_out_targets(1, $1, 1, '{1}')", run)
    await owner.fetch("select * from jobs_internal.cancel_targets(1, $1, 1, null)", run)
    value = (await jobs_api.seen(at(run, "errors")))["value"]

    error = CAUSE["message"]
    assert sorted((e["reason"], e["count"], e["message"]) for e in value) == [
        ("Canceled", 1, f"Canceled while it waited for its next attempt. Last error: {error}"),
        ("TimedOut", 1, f"Its time ran out before the next attempt. Last error: {error}"),
    ]


async def test_a_failure_that_came_after_the_wish_to_stop_is_told_as_canceled(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)

    await ran(owner, run, 1, "Failed", target="Canceled", **CAUSE | {"end_reason": "Canceled"})
    (told,) = (await jobs_api.seen(at(run, "errors")))["value"]

    assert told["message"] == f"It was canceled. Last error: {CAUSE['message']}"


async def test_a_lost_host_and_an_unknown_outcome_are_two_causes(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 2)

    for ordinal, reason in ((1, "HostLost"), (2, "OutcomeUnknown")):
        await ran(owner, run, ordinal, "Failed", error_fingerprint="HostLost", end_reason=reason)
    value = (await jobs_api.seen(at(run, "errors")))["value"]

    assert [(e["reason"], e["count"]) for e in value] == [("HostLost", 1), ("OutcomeUnknown", 1)]


async def test_targets_are_found_by_lifecycle_server_and_fingerprint(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 5)
    await ran(owner, run, 1, "Failed", **CAUSE)
    await ran(owner, run, 2, "Failed", target="WaitingForRetry", **CAUSE)
    await ran(owner, run, 2, "Failed", attempt=2, **CAUSE | {"error_fingerprint": "f-other"})
    await ran(owner, run, 3, "TimedOut", end_reason="TimedOut")

    async def databases(path=at(run, "targets"), **query):
        value = (await jobs_api.seen(path, **query))["value"]
        return sorted(each["properties"]["target"]["databaseName"] for each in value)

    assert await databases(lifecycle="Failed") == ["db1", "db2"]
    assert await databases(lifecycle="Failed,TimedOut") == ["db1", "db2", "db3"]
    assert await databases(server="S4") == ["db4"]
    assert await databases(server="nowhere") == []
    assert await databases(fingerprint="f-missing") == ["db1"]
    assert await databases(fingerprint="f-other", server="s2", lifecycle="Failed") == ["db2"]
    assert await databases(at(run, "steps/step1/targets"), lifecycle="Created") == ["db4", "db5"]
    page = await jobs_api.seen(at(run, "targets"), lifecycle="Failed", __top="1")
    assert len(page["value"]) == 1
    for name, value in {"lifecycle": "Failed,Nothing", "server": "a\0"}.items():
        assert wrong_field(await jobs_api.get(at(run, "targets"), **{name: value})) == name


async def test_attempts_show_all_that_is_known_of_them(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    sets = [a_set("n m", ["1", None]), {"statement": 2, "tag": "CREATE"}]
    more = {
        "detail": "d", "context": "PL/pgSQL function f()", "error_position": 7, "statement_no": 1,
        "backend_pid": 42, "server_version": 160004, "xact_id": "771", "rows": 3, "bytes": 30,
        "notices": [{"severity": "NOTICE", "message": "hello"}], "timings": {"run": 1.5},
        "blockers": [{"pid": 9}],
    }  # fmt: skip
    await ran(owner, run, 1, "Failed", target="WaitingForRetry", **CAUSE, **more)
    await ran(owner, run, 1, "Succeeded", attempt=2, results=sets)
    path = at(run, "steps/step1/targets", (await ids(owner, run))[1], "attempts")

    listed = (await jobs_api.seen(path))["value"]
    first = await jobs_api.seen(f"{path}/1")
    second = (await jobs_api.seen(f"{path}/2"))["properties"]

    assert [each["name"] for each in listed] == ["2", "1"]
    assert first == listed[1]
    assert first["id"] == jobs_api.url(f"{path}/1")
    shown = first["properties"]
    assert {name: shown[name] for name in ("attempt", "lifecycle", "endReason")} == {
        "attempt": 1, "lifecycle": "Failed", "endReason": "StatementFailed",
    }  # fmt: skip
    for name, value in {"errorPosition": 7, "errorFingerprint": "f-missing", "xactId": "771",
                        "context": "PL/pgSQL function f()", "statementNo": 1, "rows": 3,
                        "serverVersion": 160004, "timings": {"run": 1.5}, "hint": "Make it.",
                        "blockers": [{"pid": 9}], "backendPid": 42}.items():  # fmt: skip
        assert shown[name] == value, name
    assert "results" not in listed[0]["properties"]
    assert listed[0]["properties"]["resultSets"] == 1
    assert second["results"] == sets
    page = await jobs_api.seen(path, __top="1")
    assert [
        each["name"] for each in (await jobs_api.call.get(page["nextLink"])).json()["value"]
    ] == ["1"]


async def test_numbers_keep_all_their_digits(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await ran(owner, run, 1, "Succeeded")
    digits = "123456789012345678901234567890.12345678901234567890"
    await owner.execute(
        "update jobs_internal.task set results = jsonb_build_array(jsonb_build_object("
        "'columns', '[{\"name\": \"n\"}]'::jsonb, 'rows', jsonb_build_array(jsonb_build_array($1::numeric))))",
        Decimal(digits),
    )

    joined = await jobs_api.get(at(run, "results"))

    assert f'"rows":[["s1","db1",null,{digits}]]' in joined.text


async def test_a_reservation_is_no_attempt(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await ran(owner, run, 1, "Created")
    path = at(run, "steps/step1/targets", (await ids(owner, run))[1], "attempts")

    assert (await jobs_api.seen(path))["value"] == []
    for name in ("1", "x", "99999999999"):
        assert problem(await jobs_api.get(f"{path}/{name}")) == (404, "ResourceNotFound")


async def test_results_are_one_table_over_all_targets_that_succeeded(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 4)
    await ran(owner, run, 1, "Succeeded", results=[a_set("a b", [1, "x"], [2, None])])
    await ran(owner, run, 2, "Failed", results=[a_set("a b", [9, "no"])])
    await ran(
        owner, run, 3, "Succeeded",
        results=[{"statement": 1, "tag": "CREATE TABLE"}, a_set("b c b", [3, 4, 5], truncated=True)],
    )  # fmt: skip
    await ran(owner, run, 4, "Succeeded", results=[a_set("a b"), a_set("other", ["second"])])

    shown = await jobs_api.seen(at(run, "results"))

    assert shown["columns"] == ["serverName", "databaseName", "schemaName", "a", "b", "c", "b"]
    assert shown["rows"] == [
        ["s1", "db1", None, 1, "x", None, None],
        ["s1", "db1", None, 2, None, None, None],
        ["s3", "db3", None, None, 3, 4, 5],
    ]
    assert (shown["stepName"], shown["set"], shown["targets"], shown["truncated"]) == (
        "step1", 1, 3, True,
    )  # fmt: skip
    assert "nextLink" not in shown
    second = await jobs_api.seen(at(run, "results"), step="STEP1", set="2")
    assert second["rows"] == [["s4", "db4", None, "second"]]
    assert second["truncated"] is False


async def test_messages_are_those_of_every_attempt_that_has_finished(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 4)
    old, new = ([{"severity": "NOTICE", "message": said}] for said in ("old", "new"))
    await ran(owner, run, 1, "Failed", target="WaitingForRetry", notices=old)
    await ran(owner, run, 1, "Succeeded", attempt=2, notices=new)
    await ran(owner, run, 2, "Succeeded", notices=[])
    await ran(owner, run, 3, "Failed", notices=old)
    await ran(owner, run, 4, "InProgress")
    await some_targets(owner, job, run, 1, step_id=2)
    await ran(owner, run, 1, "Succeeded", step=2, notices=new)

    value = (await jobs_api.seen(at(run, "messages")))["value"]

    assert value[1] == {
        "stepName": "step1", "targetId": str((await ids(owner, run))[1]), "serverName": "s1",
        "databaseName": "db1", "attempt": 2, "notices": new,
    }  # fmt: skip
    shown = [(e["stepName"], e["databaseName"], e["notices"][0]["message"]) for e in value]
    assert shown == [
        ("step1", "db1", "old"), ("step1", "db1", "new"), ("step1", "db3", "old"), ("step2", "db1", "new"),
    ]  # fmt: skip
    assert (await jobs_api.seen(at(run, "messages"), step="STEP2"))["value"] == value[3:]
    page = await jobs_api.seen(at(run, "messages"), __top="2")
    rest = (await jobs_api.call.get(page["nextLink"])).json()
    assert (page["value"] + rest["value"], "nextLink" in rest) == (value, False)


async def test_results_come_in_pages_that_may_end_inside_a_target(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 4)
    for ordinal, count in ((1, 3), (2, 0), (3, 4), (4, 1)):
        rows = [[f"{ordinal}-{n}"] for n in range(count)]
        await ran(owner, run, ordinal, "Succeeded", results=[a_set("v", *rows)])

    seen, sizes = [], []
    page = await jobs_api.seen(at(run, "results"), __top="2")
    while True:
        seen += [row[3] for row in page["rows"]]
        sizes.append(len(page["rows"]))
        assert page["columns"][3:] == ["v"]
        if "nextLink" not in page:
            break
        page = (await jobs_api.call.get(page["nextLink"])).json()

    assert seen == ["1-0", "1-1", "1-2", "3-0", "3-1", "3-2", "3-3", "4-0"]
    assert sizes == [2, 2, 2, 2]


async def test_a_page_of_attempts_with_many_notices_is_short(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    notices = [{"severity": "NOTICE", "message": "x" * 8000}] * 150
    for attempt in range(1, 5):
        await ran(
            owner, run, 1, "Failed", attempt=attempt, target="WaitingForRetry", notices=notices
        )
    path = at(run, "steps/step1/targets", (await ids(owner, run))[1], "attempts")

    pages = [await jobs_api.seen(path)]
    while link := pages[-1].get("nextLink"):
        pages.append((await jobs_api.call.get(link)).json())

    assert [[each["name"] for each in page["value"]] for page in pages] == [["4", "3"], ["2", "1"]]


async def test_a_page_of_results_has_few_cells_however_many_columns_the_targets_have(
    jobs_api, owner, job
):
    run = await a_planned_run(owner, job, 2)
    for ordinal, count in ((1, 100), (2, 40)):
        names = " ".join(f"c{ordinal}_{n}" for n in range(1600))
        await ran(
            owner, run, ordinal, "Succeeded", results=[a_set(names, *[[None] * 1600] * count)]
        )

    pages = [await jobs_api.seen(at(run, "results"), __top="1000")]
    while link := pages[-1].get("nextLink"):
        pages.append((await jobs_api.call.get(link)).json())

    assert [len(page["rows"]) for page in pages] == [62, 38, 40]
    assert {len(page["columns"]) for page in pages} == {1603}


async def test_results_of_several_steps_are_asked_for_by_step(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await ran(owner, run, 1, "Succeeded", results=[a_set("v", ["one"])])
    await some_targets(owner, job, run, 1, step_id=2)
    await ran(owner, run, 1, "Succeeded", step=2, results=[a_set("v", ["two"])])

    assert wrong_field(await jobs_api.get(at(run, "results"))) == "step"
    assert (await jobs_api.seen(at(run, "results"), step="step2"))["rows"][0][3] == "two"
    assert problem(await jobs_api.get(at(run, "results"), step="step9")) == (
        404,
        "ResourceNotFound",
    )
    for wrong in ("0", "x", "-1", "99999999999999999999"):
        assert wrong_field(await jobs_api.get(at(run, "results"), step="step1", set=wrong)) == "set"
    unbegun = (await jobs_api.post("jobs/nightly/start")).json()["name"]
    empty = await jobs_api.seen(at(unbegun, "results"))
    assert (empty["rows"], empty["targets"], len(empty["columns"])) == ([], 0, 3)


async def test_a_step_or_a_target_is_canceled_alone(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 3)
    await ran(owner, run, 1, "InProgress")
    await ran(owner, run, 2, "Succeeded")
    target = await ids(owner, run)
    rows = (
        "select step_id, ordinal, requested_by, door, reason from jobs_internal.cancellation"
        " order by requested_at"
    )

    one = await jobs_api.post(
        at(run, "steps/step1/targets", target[1], "cancel"), {"reason": "wrong"}
    )
    over = await jobs_api.post(at(run, "steps/step1/targets", target[2], "cancel"))
    long = await jobs_api.post(at(run, "cancel"), {"reason": "x" * 1001})
    assert wrong_field(long) == "reason"
    step = await jobs_api.post(at(run, "steps/STEP1/cancel"))

    assert [(each.status_code, each.content) for each in (one, step)] == [(200, b"")] * 2
    assert problem(over) == (400, "ElasticJobsOperationFailed")
    kept = [tuple(row) for row in await owner.fetch(rows)]
    assert [(row[0], row[1], row[3], row[4]) for row in kept] == [
        (1, 1, "rest", "wrong"), (1, None, "rest", None),
    ]  # fmt: skip
    for path in ("steps/step2/cancel", f"steps/step1/targets/{uuid4()}/cancel"):
        assert problem(await jobs_api.post(at(run, path))) == (404, "ResourceNotFound")
    assert problem(await jobs_api.post(at(run, "steps/step1/targets/x/cancel"))) == (
        404, "ResourceNotFound",
    )  # fmt: skip


async def test_a_target_that_failed_is_retried(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 3)
    await ran(owner, run, 1, "Failed")
    await ran(owner, run, 2, "Succeeded")
    target = await ids(owner, run)

    async def retry(ordinal):
        return await jobs_api.post(at(run, "steps/STEP1/targets", target[ordinal], "retry"))

    again = await retry(1)
    refused = [await retry(ordinal) for ordinal in (1, 2, 3)]

    assert again.status_code == 200
    shown = again.json()["properties"]
    assert (shown["lifecycle"], shown["currentAttempts"]) == ("Created", 1)
    assert "endTime" not in shown and "endReason" not in shown
    assert again.json()["name"] == str(target[1])
    assert {problem(each) for each in refused} == {(409, "ExecutionNotRetryable")}
    errors = [each.json()["error"] for each in refused]
    assert {each["target"] for each in errors} == {"targetId"}
    assert "without success" in errors[0]["message"] and "rerun" in errors[1]["message"]
    attempts = await jobs_api.seen(at(run, "steps/step1/targets", target[1], "attempts"))
    assert [each["properties"]["lifecycle"] for each in attempts["value"]] == ["Failed"]
    await jobs_api.post(at(run, "steps/step1/cancel"))
    await owner.execute("update jobs_internal.target_execution set end_time = now(), lifecycle = 'Failed'"
                        " where ordinal = 1")  # fmt: skip
    assert "being canceled" in (await retry(1)).json()["error"]["message"]
    absent = at(run, "steps/step1/targets", uuid4(), "retry")
    assert problem(await jobs_api.post(absent)) == (404, "ResourceNotFound")


async def test_a_summary_and_a_why_tell_who_wanted_it_to_stop(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 2)
    await ran(owner, run, 1, "InProgress", backend_pid=7)
    target = await ids(owner, run)
    one = at(run, "steps/step1/targets", target[1])
    await jobs_api.post(f"{one}/cancel", {"reason": "wrong"})
    await jobs_api.post(at(run, "cancel"), {"reason": "all of it"})
    await owner.execute(
        "update jobs_internal.cancellation set cancel_method = 'protocol', completed_at = requested_at"
        " where ordinal is not null"
    )
    await end(owner, run, "Canceled")

    first, second = (await jobs_api.seen(at(run, "summary")))["cancellations"]
    met = await jobs_api.seen(f"{one}/why")
    other = await jobs_api.seen(at(run, "steps/step1/targets", target[2], "why"))

    assert first.pop("requestedAt") == first.pop("completedAt")
    assert first.pop("requestedBy")
    assert first == {
        "reason": "wrong", "door": "rest", "needed": "protocol", "stepName": "step1",
        "targetId": str(target[1]), "serverName": "s1", "databaseName": "db1",
    }  # fmt: skip
    assert set(second) == {"requestedBy", "requestedAt", "reason", "door"}
    assert [each["reason"] for each in met["cancellations"]] == ["wrong", "all of it"]
    assert [each["reason"] for each in other["cancellations"]] == ["all of it"]


async def test_a_cancellation_behind_the_end_did_not_meet_the_target(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 2)
    await ran(owner, run, 1, "Succeeded")

    await jobs_api.post(at(run, "cancel"))
    path = at(run, "steps/step1/targets", (await ids(owner, run))[1], "why")

    assert (await jobs_api.seen(path))["cancellations"] == []


async def test_a_summary_tells_where_the_run_comes_from_and_what_holds_it(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 2)

    before = await jobs_api.seen(at(run, "summary"))
    await jobs_api.post("pause")
    paused = await jobs_api.seen(at(run, "summary"))
    await end(owner, run)
    over = await jobs_api.seen(at(run, "summary"))

    assert (before["origin"], before["jobVersion"], before["stepCount"]) == ("caller", 1, 2)
    assert before["actor"] and before["door"] and "slot" not in before
    assert [each.get("waitReason") for each in (before, paused, over)] == [
        None, "AccountPaused", None,
    ]  # fmt: skip


async def test_the_time_left_is_told_only_while_it_can_be_known(jobs_api, owner):
    job = await a_job(owner, "nightly", steps=2)
    run = await a_planned_run(owner, job, 4)
    await ran(owner, run, 1, "Succeeded")

    async def left():
        return "etaSeconds" in await jobs_api.seen(at(run, "summary"))

    assert not await left(), "the second step has not been reached"
    await some_targets(owner, job, run, 1, step_id=2)
    assert await left()
    await jobs_api.post("pause")
    assert not await left(), "nothing may start"
    await jobs_api.post("resume")
    await ran(owner, run, 2, "Succeeded")
    await owner.execute(
        "update jobs_internal.job_execution set start_time = now() - interval '5 s';"
        "update jobs_internal.target_execution set end_time = end_time - interval '20 s'"
    )
    assert not await left(), "nothing has ended for long"


async def test_a_lock_stops_no_cancel_of_a_part_but_a_query(jobs_api, owner, job):
    await jobs_api.a_job("locked")
    run = await a_planned_run(owner, job, 1)
    lock = f"{ACCOUNT}{principals.AUTHORIZATION}/locks/still"
    await arm.put(jobs_api.call, lock, {"properties": {"level": "ReadOnly"}})

    canceled = await jobs_api.post(at(run, "steps/step1/cancel"))
    refused = await jobs_api.post("queries", {"targetGroup": "fleet", "sql": "select 1"})

    assert canceled.status_code == 200
    assert problem(refused) == (409, "ScopeLocked")


async def test_why_is_told_by_the_rows_where_they_know(jobs_api, owner, job, monkeypatch):
    monkeypatch.setattr(reports, "PATIENCE", 0.3)  # of what runs the engine is asked who blocks it
    run = await a_planned_run(owner, job, 5)
    await ran(owner, run, 1, "Failed", **CAUSE)
    await ran(owner, run, 2, "InProgress", backend_pid=7)
    await ran(owner, run, 3, "Failed", target="WaitingForRetry", **CAUSE)
    await ran(owner, run, 4, "Created")
    target = await ids(owner, run)

    async def why(ordinal):
        return await jobs_api.seen(at(run, "steps/step1/targets", target[ordinal], "why"))

    over, running, retry, reserved = [await why(ordinal) for ordinal in (1, 2, 3, 4)]
    assert (over["lifecycle"], over["details"]["endReason"]) == ("Failed", "StatementFailed")
    assert "does not exist" in over["message"]
    assert (running["lifecycle"], running["details"]["backendPid"]) == ("InProgress", 7)
    assert "waitReason" not in running
    assert (retry["waitReason"], retry["details"]["lastAttempt"]["sqlstate"]) == ("Retry", "42P01")
    assert retry["details"]["notBefore"] in retry["message"]
    assert reserved["waitReason"] == "Reserved"
    assert all(each["since"].endswith("Z") for each in (over, running, retry, reserved))
    assert (await jobs_api.post("pause")).status_code == 200
    assert (await why(5))["waitReason"] == "AccountPaused"


async def test_why_tells_that_the_host_was_lost(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await ran(owner, run, 1, "InProgress", backend_pid=7)
    await owner.execute("update jobs_internal.task set disowned = gen_random_uuid()")

    told = await jobs_api.seen(at(run, "steps/step1/targets", (await ids(owner, run))[1], "why"))

    assert (told["lifecycle"], told["waitReason"]) == ("InProgress", "HostLost")
    assert told["message"] == "Its host was lost; the target is asked what became of the attempt."


@pytest.mark.parametrize(
    ("reason", "lead"),
    [
        ("ServerFull", "Its server had no room for a connection"),
        ("ServerStarting", "Its server is starting, stopping or recovering"),
    ],
)
async def test_why_quotes_the_server_that_has_no_room(jobs_api, owner, job, reason, lead):
    run = await a_planned_run(owner, job, 1)
    path = at(run, "steps/step1/targets", (await ids(owner, run))[1], "why")
    await owner.execute(
        "update jobs_internal.target_execution set wait_reason = $1, last_message = 'not now',"
        " tried_at = now(), not_before = now() + interval '1 hour'",
        reason,
    )

    told = await jobs_api.seen(path)

    assert (told["waitReason"], told["details"]["serverSaid"]) == (reason, "not now")
    again = told["details"]["notBefore"]
    assert told["message"] == f"{lead}; it is tried again at {again}. The server said: not now."


async def test_why_is_asked_of_the_engine_where_only_it_knows(jobs_api, owner, job, monkeypatch):
    run = await a_planned_run(owner, job, 2)
    path = at(run, "steps/step1/targets", (await ids(owner, run))[2], "why")
    said = '{"waitReason": "ServerConnections", "message": "All in use.", "details": {"inUse": 4}}'
    answer = (
        "update jobs_internal.request set answer = $1::text::jsonb, answered_at = now()"
        " where answered_at is null returning kind, args ->> 'run', args -> 'stepId', args -> 'ordinal'"
    )

    asking = asyncio.create_task(jobs_api.seen(path))
    while not (asked := await owner.fetch(answer, said)):
        await asyncio.sleep(0.05)

    assert [tuple(row) for row in asked] == [("why", str(run), "1", "2")]
    told = await asking
    assert {name: told[name] for name in ("lifecycle", "waitReason", "message")} == {
        "lifecycle": "Created", "waitReason": "ServerConnections", "message": "All in use.",
    }  # fmt: skip
    assert told["details"] == {"attempts": 0, "inUse": 4}
    monkeypatch.setattr(reports, "PATIENCE", 0.3)
    silent = await jobs_api.seen(path)
    assert (silent["lifecycle"], silent["message"]) == ("Created", "the engine did not answer")
    assert await jobs_api.metadata("select 1 from audit_event where action like '%why%'") == []


async def test_the_history_of_a_deleted_job_is_read_only_when_asked_for(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    await ran(owner, run, 1, "Succeeded", results=[a_set("v", ["kept"])])
    await end(owner, run)
    target = (await ids(owner, run))[1]
    below = f"steps/step1/targets/{target}"
    paths = [
        at(run), at(run, "steps/step1"), at(run, below), at(run, below, "attempts"),
        at(run, below, "attempts/1"), at(run, below, "why"), at(run, "summary"),
        at(run, "errors"), at(run, "results"), at(run, "targets"), at(run, "messages"),
    ]  # fmt: skip
    before = [await jobs_api.seen(path) for path in paths]
    assert (await jobs_api.delete("jobs/nightly")).status_code == 200

    for path, seen in zip(paths, before, strict=True):
        assert problem(await jobs_api.get(path)) == (404, "ResourceNotFound"), path
        assert await jobs_api.seen(path, includeDeleted="true") == seen, path
        assert wrong_field(await jobs_api.get(path, includeDeleted="maybe")) == "includeDeleted"


async def test_what_is_not_there_is_not_found(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    for below in ("summary", "errors", "results", "messages", "targets"):
        for path in (at(uuid4(), below), at("x", below), f"jobs/other/executions/{run}/{below}"):
            assert problem(await jobs_api.get(path)) == (404, "ResourceNotFound"), path
    for below in ("why", "attempts", "attempts/1"):
        for target in (uuid4(), "x"):
            path = at(run, "steps/step1/targets", target, below)
            assert problem(await jobs_api.get(path)) == (404, "ResourceNotFound"), path


async def test_a_query_is_a_run_of_the_system_s_job(jobs_api):
    await jobs_api.a_job()
    body = {"targetGroup": "FLEET", "sql": "select 1", "maxRows": 5}

    answer = await jobs_api.post("queries", body)

    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert run["id"] == ref(f"jobs/adhoc/executions/{run['name']}")
    assert await jobs_api.seen(f"jobs/adhoc/executions/{run['name']}") == run
    assert (await jobs_api.seen(f"jobs/adhoc/executions/{run['name']}/summary"))["total"] == 0
    (row,) = await jobs_api.control(
        "select j.system, j.overlap, x.origin, x.door, x.overrides::text, s.name, s.retry_attempts,"
        "       s.timeout_seconds, s.options::text, s.target_group_name, s.credential_name"
        "  from jobs_internal.job_execution x join jobs_internal.job j using (job_id)"
        "  join jobs_internal.job_step s on (s.job_id, s.version) = (x.job_id, x.job_version)"
    )
    assert tuple(row) == (
        True, "allow", "caller", "rest", '{"maxRows": 5, "rollback": true}', "query", 0, 60,
        '{"settings": {"access": "readOnly"}}', "fleet", None,
    )  # fmt: skip
    listed = (await jobs_api.seen("jobs/adhoc/executions"))["value"]
    assert [each["name"] for each in listed] == [run["name"]]


async def test_the_same_query_again_needs_no_other_version(jobs_api):
    await jobs_api.a_job()
    asked = {"targetGroup": "fleet", "sql": "select 1"}
    writing = {**asked, "sql": "delete from t", "readOnly": False, "timeoutSeconds": 7,
               "credential": ref("credentials/login")}  # fmt: skip

    versions = [
        (await jobs_api.post("queries", body)).json()["properties"]["jobVersion"]
        for body in (asked, asked, writing, asked)
    ]

    assert versions == [1, 1, 2, 3]
    (row,) = await jobs_api.control(
        "select x.overrides::text, s.options::text, s.timeout_seconds, s.credential_name"
        "  from jobs_internal.job_execution x"
        "  join jobs_internal.job_step s on (s.job_id, s.version) = (x.job_id, x.job_version)"
        " where x.job_version = 2"
    )
    assert tuple(row) == (
        '{"maxRows": 1000}', '{"settings": {"access": "readWrite"}}', 7, "login",
    )  # fmt: skip


async def test_a_repeated_query_is_the_same_run(jobs_api):
    await jobs_api.a_job()
    same = {"Idempotency-Key": "k"}
    body = {"targetGroup": ref("targetGroups/fleet"), "sql": "select 1"}

    answers = await asyncio.gather(*(jobs_api.post("queries", body, **same) for _ in range(3)))
    other = await jobs_api.post("queries", body | {"sql": "select 2"}, **same)

    assert {each.json()["name"] for each in answers} == {answers[0].json()["name"]}
    assert problem(other) == (409, "IdempotencyKeyMismatch")
    assert len((await jobs_api.seen("jobs/adhoc/executions"))["value"]) == 1


async def test_the_system_s_job_is_started_by_queries_only(jobs_api):
    await jobs_api.a_job()
    await jobs_api.post("queries", {"targetGroup": "fleet", "sql": "select 1"})

    answers = [
        await jobs_api.post("jobs/adhoc/start"),
        await jobs_api.put(f"jobs/adhoc/executions/{uuid4()}"),
        await jobs_api.put("jobs/adhoc/steps/query", {"properties": {
            "targetGroup": ref("targetGroups/fleet"), "action": {"value": "select 2"}}}),
    ]  # fmt: skip

    assert {problem(each) for each in answers} == {(400, "ElasticJobsOperationFailed")}
    assert (await jobs_api.delete("jobs/adhoc")).status_code == 204
    assert len((await jobs_api.seen("jobs/adhoc/executions"))["value"]) == 1


async def test_a_job_of_that_name_is_left_to_its_people(jobs_api, owner):
    await jobs_api.a_job()
    await a_job(owner, "Adhoc")

    answer = await jobs_api.post("queries", {"targetGroup": "fleet", "sql": "select 1"})

    assert problem(answer) == (409, "Conflict")
    assert (await jobs_api.seen("jobs/adhoc"))["properties"]["version"] == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"targetGroup": "none"}, "targetGroup"),
        ({"targetGroup": ""}, "targetGroup"),
        ({"targetGroup": "a/b"}, "targetGroup"),
        ({"targetGroup": "/no/id"}, "targetGroup"),
        ({"credential": "none"}, "credential"),
        ({"sql": ""}, "sql"),
        ({"sql": "begin; select 1"}, "sql"),
        ({"sql": "vacuum"}, "sql"),
        ({"sql": "alter system set work_mem = '1MB'"}, "sql"),
        ({"sql": None}, "sql"),
        ({"timeoutSeconds": 0}, "timeoutSeconds"),
        ({"timeoutSeconds": 43_201}, "timeoutSeconds"),
        ({"maxRows": 0}, "maxRows"),
        ({"maxRows": 10_001}, "maxRows"),
        ({"maxRows": "many"}, "maxRows"),
        ({"limit": 0}, "limit"),
        ({"limt": 1}, "limt"),
        ({"targetGroup": None}, "targetGroup"),
        ({"targets": [{"serverName": "srv"}]}, "targetGroup"),
        ({"targetGroup": None, "targets": []}, "targets"),
    ],
)
async def test_what_is_wrong_with_a_query_is_named(jobs_api, change, field):
    await jobs_api.a_job()

    asked = {"targetGroup": "fleet", "sql": "select 1"} | change
    given = {name: value for name, value in asked.items() if value is not None}
    answer = await jobs_api.post("queries", given)

    assert wrong_field(answer) == field
    assert await jobs_api.control("select 1 from jobs_internal.job where name = 'adhoc'") == []


async def test_a_statement_that_can_not_be_rolled_back_needs_the_right_to_write(jobs_api):
    await jobs_api.a_job()

    answer = await jobs_api.post(
        "queries", {"targetGroup": "fleet", "sql": "vacuum", "readOnly": False}
    )

    assert answer.status_code == 200


async def test_a_query_needs_the_servers_and_to_write_also_the_jobs(jobs_api):
    await jobs_api.a_job()
    inner = {"type": "TargetGroup", "targetGroup": ref("targetGroups/fleet")}
    await jobs_api.made("targetGroups/outer", {"properties": {"members": [inner]}})
    reads = {"targetGroup": "fleet", "sql": "select 1"}
    nested = reads | {"targetGroup": "outer"}
    writes = reads | {"readOnly": False}
    chooses = reads | {"credential": "login"}

    async def asked(who, *bodies):
        async with who.call:
            answers = [await who.post("queries", body) for body in bodies]
        return [
            (each.status_code, each.json().get("error", {}).get("code", "")) for each in answers
        ]

    denied, unknown = (403, "AuthorizationFailed"), (400, "InvalidTargetServer")
    reader = await a_caller(jobs_api, (ACCOUNT, READER))
    assert await asked(reader, reads) == [denied]
    operator = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR))
    assert await asked(operator, reads, nested, writes, chooses) == [
        unknown, unknown, denied, denied,
    ]  # fmt: skip
    contributor = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR))
    assert await asked(contributor, reads, writes) == [unknown, unknown]
    both = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))
    assert await asked(both, reads, nested, writes, chooses) == [(200, "")] * 4


async def test_an_operator_stops_parts_and_a_reader_only_reads(jobs_api, owner, job):
    run = await a_planned_run(owner, job, 1)
    target = (await ids(owner, run))[1]
    of_target = at(run, "steps/step1/targets", target)
    paths = [f"{of_target}/cancel", at(run, "steps/step1/cancel")]
    reader = await a_caller(jobs_api, (ACCOUNT, READER))
    operator = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR))

    async with reader.call, operator.call:
        refused = [await reader.post(path) for path in (*paths, f"{of_target}/retry")]
        read = [await reader.get(at(run, below)) for below in ("summary", "errors", "results")]
        stopped = [await operator.post(path) for path in paths]

    assert {problem(each) for each in refused} == {(403, "AuthorizationFailed")}
    assert {each.status_code for each in read} == {200}
    assert stopped[0].status_code == 200
    assert stopped[1].status_code in {200, 400}


async def test_a_pause_may_stop_what_runs_and_leaves_what_waits(jobs_api, owner, job):
    begun = await a_planned_run(owner, job, 1)
    await owner.execute(
        "update jobs_internal.job_execution set lifecycle = 'InProgress', start_time = now()"
    )
    waiting = (await jobs_api.post("jobs/nightly/start")).json()["name"]
    url, true = jobs_api.url("pause"), {"cancelRunning": "true"}

    plain = await jobs_api.post("pause")
    paused = await jobs_api.call.post(url, params=SQL | true)
    again = await jobs_api.call.post(url, params=SQL | true)
    wrong = await jobs_api.call.post(url, params=SQL | {"cancelRunning": "perhaps"})

    assert plain.json() == {"paused": True}
    assert paused.json() == {"paused": True, "canceled": 1}
    assert again.json() == {"paused": True, "canceled": 0}
    assert wrong_field(wrong) == "cancelRunning"
    asked = await owner.fetch(
        "select job_execution_id, reason, door from jobs_internal.cancellation"
    )
    assert [tuple(row) for row in asked] == [(begun, "The account was paused.", "rest")]
    assert (await jobs_api.seen(at(waiting)))["properties"]["lifecycle"] == "Created"
    assert (await jobs_api.post("resume")).json() == {"paused": False}
