"""How tasks are handed to hosts, begin, intend to commit, end and are read: each once, by invocation."""

import asyncio
import json
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.executions import EPOCH, a_session
from tests.support.execution_fixture import (
    FAILED,
    ITEM,
    SUCCEEDED,
    Key,
    Q,
    a_host,
    an_execution,
    waits,
)

pytestmark = pytest.mark.deep

SERVER = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, job_credential, revision)
values ($1, $2, '{h}', 5432, 'disable', $3, 7)
"""
CREDENTIAL = """
insert into jobs_internal.credential (name, username, secret, created_by, modified_by)
values ($1, 'u', 'env:X', 'test', 'test') returning credential_id
"""


async def refused(session, statement, *args) -> str:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await session.fetch(statement, *args)
    return caught.value.sqlstate


async def test_every_query_compiles_and_makes_a_promise(account):
    engine = await account.connect("engine")
    for name, text in Q.items():
        assert text.startswith("-- "), name
        await engine.prepare(text)
    await engine.close()


async def test_a_reserved_task_reaches_its_host_with_all_that_it_needs(execution, owner):
    heard: list[str] = []
    await execution.engine.add_listener("muster_task", lambda *said: heard.append(said[3]))

    made = await execution.reserve(2, 1)

    first, second = await execution.ask("take", execution.host, 0)
    revision = await owner.fetchval("select revision from jobs_internal.directory_revision")
    target = await execution.target(2)
    described = await owner.fetchrow(
        "select * from jobs_internal.snapshot_target where ordinal = 2"
    )
    run = await execution.row()
    assert (first["ordinal"], second["ordinal"]) == (2, 1)
    assert first["number"] == second["number"] > 0
    assert dict(first) | {"number": 0} == {
        "number": 0, "kind": "task", "run_day": execution.day, "job_execution_id": execution.run, "step_id": 1,
        "ordinal": 2, "attempt": 1, "invocation_id": UUID(made[0]["invocation_id"]),
        "target_execution_id": target["target_execution_id"], "job_id": execution.job.id, "job_version": 1,
        "run_create_time": run["create_time"], "overrides": "{}", "target_type": "SqlDatabase",
        "target_id": described["target_id"], "server_id": "/servers/2", "server_name": "s2",
        "pool_name": None, "database_name": "db2", "schema_name": None, "labels": "{}",
        "credential_id": None, "credential_version": None, "first_start": None, "tried_at": None,
        "slot": None, "directory": revision, "started": False, "begun": False, "script_outcome": None, "committed_attempt": None,
    }  # fmt: skip
    task = await execution.task(2)
    assert (task["lifecycle"], task["host_id"], task["epoch"]) == ("Created", execution.host, EPOCH)
    assert (task["start_time"], target["lifecycle"]) == (None, "Created")
    assert heard == [""]


async def test_a_host_takes_in_order_behind_what_it_knows_and_only_its_own(execution):
    other = await a_host(execution.engine)
    one, two = await execution.reserve(1), await execution.reserve(2, stops=[stop := uuid4()])
    await execution.reserve(3, host=other)

    rows = await execution.ask("take", execution.host, 0)

    assert [(row["kind"], str(row["invocation_id"])) for row in rows] == [
        ("task", one[0]["invocation_id"]), ("task", two[0]["invocation_id"]), ("cancel", str(stop)),
    ]  # fmt: skip
    numbers = [row["number"] for row in rows]
    assert numbers[0] < numbers[1] == numbers[2]
    assert await execution.ask("take", execution.host, 0) == rows
    assert await execution.ask("take", execution.host, numbers[0]) == rows[1:]
    assert await execution.ask("take", execution.host, numbers[1]) == []
    assert await execution.ask("take", execution.host, 0) == []
    assert [row["ordinal"] for row in await execution.ask("take", other, 0)] == [3]


async def test_a_task_comes_with_the_one_in_whose_place_it_begins(execution):
    day, run, invocations = execution.day, execution.run, [uuid4(), uuid4()]
    slots = [None, invocations[0]]

    told = await execution.ask(
        "reserve_and_read", EPOCH, [execution.host] * 2, [day] * 2, [run] * 2, [1] * 2, [1, 2], [1] * 2,
        invocations, slots, [], [],
    )  # fmt: skip

    assert told == []
    rows = await execution.ask("take", execution.host, 0)
    assert [(row["ordinal"], row["slot"]) for row in rows] == [(1, None), (2, invocations[0])]


async def test_what_went_back_or_is_over_is_not_taken_and_what_has_started_is(execution):
    made = await execution.reserve(1, 2, 3)
    await execution.report(starts=made[:2], returns=made[2:])
    await execution.report(results=[made[0] | SUCCEEDED])

    assert [row["ordinal"] for row in await execution.ask("take", execution.host, 0)] == [2]


async def test_a_target_that_is_over_is_not_reserved(execution):
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, [1])

    await execution.reserve(1, 2)

    assert await execution.task(1) is None
    assert [row["ordinal"] for row in await execution.ask("take", execution.host, 0)] == [2]


async def test_a_target_is_reserved_once(execution):
    await execution.reserve(1)

    for attempt in (1, 2):
        with pytest.raises(asyncpg.UniqueViolationError):
            await execution.reserve(1, attempt=attempt)


@pytest.mark.parametrize(
    ("step", "target", "server", "expected"),
    [
        ("S", "T", "D", "S"),
        (None, "T", "D", "T"),
        (None, None, "d", "D"),
        (None, None, "nobody", None),
        (None, None, None, None),
    ],
)
async def test_the_credential_is_the_step_s_or_the_target_s_or_the_server_s(
    execution, owner, step, target, server, expected
):
    ids = {name: await owner.fetchval(CREDENTIAL, name) for name in ("S", "T", "D")}
    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    await owner.execute("update jobs_internal.job_step set credential_id = $1", ids.get(step))
    await owner.execute(
        "update jobs_internal.snapshot_target set credential_id = $1", ids.get(target)
    )
    await owner.execute(SERVER, "/servers/1", "s1", server)

    await execution.reserve(1)

    (row,) = await execution.ask("take", execution.host, 0)
    version = await owner.fetchval(
        "select row_version from jobs_internal.credential where name = $1", expected
    )
    assert (row["credential_id"], row["credential_version"]) == (ids.get(expected), version)


async def test_documents_hold_steps_servers_and_secrets(execution, owner):
    named = await owner.fetchval(CREDENTIAL, "C")
    await owner.execute(SERVER, "/a", "a", "C")
    await owner.execute(SERVER, "/b", "b", None)
    contact = {"server_id": "/a", "server_version": 180000, "max_connections": 100, "budget": 10}
    await execution.report(contacts=[contact, contact | {"budget": 9}])
    await execution.report(contacts=[contact | {"budget": 5}])

    step = json.loads(await execution.value("step_document", execution.job.id, 1, 1))
    servers = json.loads(await execution.value("servers", ["/a", "/nowhere"]))
    everything = json.loads(await execution.value("servers", None))

    assert step == {
        "jobName": "nightly", "stepName": "step1", "stepId": 1, "targetGroupName": "everything",
        "script": "select 1", "timeoutSeconds": 43200, "retryAttempts": 10,
        "initialRetryIntervalSeconds": 1, "maximumRetryIntervalSeconds": 120,
        "retryIntervalBackoffMultiplier": 2, "options": {}, "output": None,
        "contentHash": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    }  # fmt: skip
    identity = await owner.fetchval("select identity from jobs_internal.instance")
    assert (servers["identity"], servers["revision"]) == (str(identity), 0)
    assert [(s["server_id"], s["hosts"], s["budget"]) for s in servers["servers"]] == [
        ("/a", ["h"], 5)
    ]
    assert [(s["server_id"], s["budget"]) for s in everything["servers"]] == [
        ("/a", 5),
        ("/b", None),
    ]
    (secret,) = await execution.ask("secrets", [named, uuid4()])
    assert tuple(secret)[2:] == ("C", "u", "env:X", None)
    assert await refused(execution.engine, Q.step_document, execution.job.id, 1, 2) == "MU010"


async def test_an_attempt_begins_intends_and_succeeds(execution, owner):
    (key,) = await execution.reserve(1)

    assert (
        await execution.report(starts=[key | {"backend_pid": 4711, "server_version": 170005}]) == []
    )
    task, target, step = await execution.task(1), await execution.target(1), await execution.step()
    assert (task["lifecycle"], task["backend_pid"], task["server_version"]) == (
        "InProgress", 4711, 170005,
    )  # fmt: skip
    assert (target["lifecycle"], target["attempts"], target["phase"]) == ("InProgress", 1, "run")
    began = task["start_time"]
    assert {target["start_time"], target["attempt_start_time"], step["start_time"]} == {began}
    assert await execution.told() == []

    assert await execution.report(commits=[key | {"xact_id": "815"}]) == []
    assert (await execution.task(1))["xact_id"] == "815"
    assert (await execution.target(1))["phase"] == "commit"

    result = key | SUCCEEDED | {
        "notices": [{"m": 1}], "results": [{"tag": "SELECT 1"}], "result_hash": "ab01", "rows": 3,
        "bytes": 2**40, "statement_no": 2, "timings": {"run": 1.5}, "cancel_method": None,
    }  # fmt: skip
    assert await execution.report(results=[result]) == []
    task, target = await execution.task(1), await execution.target(1)
    assert (task["lifecycle"], task["rows"], task["bytes"], task["statement_no"]) == (
        "Succeeded", 3, 2**40, 2,
    )  # fmt: skip
    assert (task["notices"], task["results"]) == ('[{"m": 1}]', '[{"tag": "SELECT 1"}]')
    assert (task["result_hash"], task["timings"]) == (b"\xab\x01", '{"run": 1.5}')
    assert (task["xact_id"], task["backend_pid"], task["start_time"]) == ("815", 4711, began)
    assert (target["lifecycle"], target["end_reason"]) == ("Succeeded", None)
    assert target["last_message"] == "Command(s) completed."
    assert target["end_time"] == task["end_time"]
    assert await execution.told() == [
        ITEM | {"invocation_id": key["invocation_id"], "lifecycle": "Succeeded"}
    ]
    ledger = await owner.fetchrow("select * from jobs_internal.target_ledger")
    assert (ledger["lifecycle"], ledger["job_execution_id"]) == ("Succeeded", execution.run)
    assert (ledger["result_hash"], ledger["ended_at"]) == (b"\xab\x01", target["end_time"])


async def test_an_error_is_kept_whole(execution):
    (key,) = await execution.started(1)
    error = {
        "sqlstate": "22012", "message": "m", "detail": "d", "hint": "h", "context": "c", "position": 8,
        "fingerprint": "f", "blockers": [{"pid": 1}], "phase": "commit", "cancel_method": "protocol",
    }  # fmt: skip

    await execution.report(results=[key | FAILED | error])

    task, target = await execution.task(1), await execution.target(1)
    assert [task[name] for name in ("sqlstate", "message", "detail", "hint", "context")] == [
        "22012", "m", "d", "h", "c",
    ]  # fmt: skip
    assert (task["error_position"], task["error_fingerprint"]) == (8, "f")
    assert (task["blockers"], task["end_reason"]) == ('[{"pid": 1}]', "StatementFailed")
    assert (target["phase"], target["last_message"]) == ("commit", "division by zero")
    assert await execution.told() == [
        ITEM | {
            "invocation_id": key["invocation_id"], "lifecycle": "Failed", "cancel_method": "protocol",
            "reason": "StatementFailed", "sqlstate": "22012", "fingerprint": "f",
        }
    ]  # fmt: skip


async def test_a_start_and_its_result_may_come_together(execution):
    (key,) = await execution.reserve(1)

    assert (
        await execution.report(
            starts=[key], commits=[key | {"xact_id": "1"}], results=[key | SUCCEEDED]
        )
        == []
    )

    assert (await execution.target(1))["lifecycle"] == "Succeeded"


TAKEN, KNOWN, REFUSED = "taken", "known", "refused"  # known: said again after an answer got lost
ANSWERS = {
    # state         starts   commits  results  returns
    "nothing":     (REFUSED, REFUSED, REFUSED, REFUSED),
    "reserved":    (TAKEN,   REFUSED, REFUSED, TAKEN),
    "running":     (KNOWN,   TAKEN,   TAKEN,   REFUSED),
    "over":        (KNOWN,   REFUSED, KNOWN,   REFUSED),
    "another's":   (REFUSED, REFUSED, REFUSED, REFUSED),
}  # fmt: skip
KINDS = ("starts", "commits", "results", "returns")


@pytest.mark.parametrize(
    ("state", "kind", "expected"),
    [
        (state, kind, answer)
        for state, answers in ANSWERS.items()
        for kind, answer in zip(KINDS, answers, strict=True)
    ],
)
async def test_only_what_its_invocation_holds_is_taken(execution, state, kind, expected):
    key = execution.key(1, uuid4())
    if state != "nothing":
        (key,) = await execution.reserve(1)
    if state in {"running", "over"}:
        await execution.report(starts=[key])
    if state == "over":
        await execution.report(results=[key | SUCCEEDED])
    if state == "another's":
        key = key | {"invocation_id": str(uuid4())}
    before = [await execution.task(1), await execution.target(1)]
    await execution.told()
    said = {each: list[Key]() for each in KINDS}
    said["starts"] = await execution.reserve(2)
    said[kind].append(key | SUCCEEDED | {"xact_id": "1", "backend_pid": 5})

    answer = await execution.report(**said)

    assert answer == ([key["invocation_id"]] if expected == REFUSED else [])
    changed = [await execution.task(1), await execution.target(1)] != before
    assert changed is (expected == TAKEN)
    assert len(await execution.told()) == (expected == TAKEN and kind in {"results", "returns"})
    assert (await execution.task(2))["lifecycle"] == "InProgress"


@pytest.mark.parametrize("epoch", [0, 2])
async def test_a_stale_epoch_writes_nothing(execution, epoch):
    (key,) = await execution.reserve(1)
    nobody, empty = uuid4(), [[]] * 9
    calls = {
        "look": (), "news": ([],), "live_targets": (execution.day, execution.run, 1), "begin_run": (execution.run,),
        "reach_step": (execution.run, 1), "end_last_step": (execution.run, 1), "reserve": empty, "settle": ("[]",), "disown": (execution.host,),
        "read_completions": ([], []), "completion_marks": (), "end_step": (execution.run, 1, None, None),
        "end_run": (execution.run,), "cancel_targets": (execution.run, 1, None),
        "close_cancellation": (nobody, "nothing"), "time_out": (execution.run, 1, [1]),
        "live_invocations": (),
    }  # fmt: skip

    for name, args in calls.items():
        assert await refused(execution.engine, getattr(Q, name), epoch, *args) == "MU001", name
    with pytest.raises(asyncpg.PostgresError) as caught:
        await execution.report(starts=[key], epoch=epoch)

    assert caught.value.sqlstate == "MU001"
    assert (await execution.task(1))["lifecycle"] == "Created"


async def test_a_host_that_has_ended_neither_takes_nor_reports(execution):
    (key,) = await execution.reserve(1)
    await execution.engine.execute("select jobs_internal.end_host($1)", execution.host)

    for host in (execution.host, uuid4()):
        assert await refused(execution.engine, Q.take, host, 0) == "MU004"
        with pytest.raises(asyncpg.PostgresError) as caught:
            await execution.report(starts=[key], host=host)
        assert caught.value.sqlstate == "MU004"


async def test_completions_are_read_once_and_in_order(execution):
    other = await a_host(execution.engine)
    mine = await execution.started(1, 2)
    theirs = await execution.started(3, host=other)
    heard: list[str] = []
    await execution.engine.add_listener("muster_result", lambda *said: heard.append(said[3]))
    await execution.report(results=[mine[0] | SUCCEEDED])
    await execution.report(results=[theirs[0] | SUCCEEDED], host=other)
    await execution.report(results=[mine[1] | SUCCEEDED])

    marks = dict(await execution.ask("completion_marks", EPOCH))
    rows = await execution.ask("read_completions", EPOCH, [], [])
    again = await execution.ask("read_completions", EPOCH, [execution.host], [rows[0]["number"]])
    last = await execution.ask("read_completions", EPOCH, list(marks), list(marks.values()))

    assert [row["host_id"] for row in rows] == [execution.host, other, execution.host]
    assert [json.loads(row["items"])[0]["invocation_id"] for row in rows] == [
        mine[0]["invocation_id"], theirs[0]["invocation_id"], mine[1]["invocation_id"],
    ]  # fmt: skip
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert marks == {execution.host: rows[2]["number"], other: rows[1]["number"]}
    assert again == rows[1:]
    assert last == await execution.ask("read_completions", EPOCH, [], []) == []
    assert heard == ["", "", ""]


async def test_what_changes_nothing_is_not_told(execution):
    heard: list[str] = []
    await execution.engine.add_listener("muster_result", lambda *said: heard.append(said[3]))

    await execution.report(results=[execution.key(1, uuid4()) | SUCCEEDED])
    await execution.report(starts=await execution.reserve(1))

    assert (await execution.told(), heard) == ([], [])


async def test_reports_of_one_host_follow_each_other(execution, account):
    mine = await execution.started(1, 2)
    early = await account.connect("engine")
    transaction = early.transaction()
    await transaction.start()
    await execution.report(results=[mine[0] | SUCCEEDED], session=early)
    later = asyncio.create_task(execution.report(results=[mine[1] | SUCCEEDED]))
    await waits(execution.owner, execution.engine)

    await transaction.commit()
    await later

    assert [each["invocation_id"] for each in await execution.told()] == [
        key["invocation_id"] for key in mine
    ]
    await early.close()


async def test_dispatches_follow_each_other(execution, account):
    early = await account.connect("engine")
    transaction = early.transaction()
    await transaction.start()
    await execution.reserve(1, session=early)
    later = asyncio.create_task(execution.reserve(2))
    await waits(execution.owner, execution.engine)

    await transaction.commit()
    await later

    assert [row["ordinal"] for row in await execution.ask("take", execution.host, 0)] == [1, 2]
    await early.close()


async def test_two_steps_with_one_content_share_the_ledger(owner, engine):
    execution = await an_execution(owner, engine, steps=2, targets=1)
    await execution.reach(2, 1)
    (one,), (two,) = await execution.started(1), await execution.started(1, step=2)

    await execution.report(results=[one | SUCCEEDED, two | FAILED])

    ledger = await owner.fetch("select step_id, lifecycle from jobs_internal.target_ledger")
    assert [tuple(row) for row in ledger] == [(2, "Failed")]


async def test_tasks_of_several_days_go_together(execution, owner):
    await owner.execute("select jobs_internal.ensure_partitions($1::date - 1)", execution.day)
    await owner.execute(
        "alter table jobs_internal.step_execution disable trigger user;"
        "alter table jobs_internal.job_execution drop constraint a_run_belongs_to_the_day_of_its_creation"
    )
    old = uuid4()
    await owner.execute(
        "insert into jobs_internal.job_execution (job_execution_id, job_id, job_version, run_day, origin, actor, door)"
        " values ($1, $2, 1, $3::date - 1, 'caller', 'x', 'psql')",
        old, execution.job.id, execution.day,
    )  # fmt: skip
    for table, columns in (
        ("step_execution", "step_id, step_name, content_hash, snapshot_id"),
        ("target_execution", "step_id, ordinal, snapshot_id"),
    ):
        await owner.execute(
            f"insert into jobs_internal.{table} (run_day, job_execution_id, {columns})"
            f" select run_day - 1, $1, {columns} from jobs_internal.{table} where job_execution_id = $2",
            old, execution.run,
        )  # fmt: skip
    yesterday = await owner.fetchval("select $1::date - 1", execution.day)
    invocations = [uuid4(), uuid4()]

    await execution.engine.execute(
        Q.reserve, EPOCH, [execution.host] * 2, [execution.day, yesterday], [execution.run, old], [1, 1], [1, 1],
        [1, 1], invocations, [], [],
    )  # fmt: skip
    taken = await execution.ask("take", execution.host, 0)
    keys = [
        execution.key(1, row["invocation_id"])
        | {"run_day": str(row["run_day"]), "job_execution_id": str(row["job_execution_id"])}
        for row in taken
    ]
    assert await execution.report(starts=keys) == []
    assert await execution.report(commits=[key | {"xact_id": "1"} for key in keys]) == []
    assert await execution.report(results=[key | SUCCEEDED for key in keys]) == []

    assert {row["invocation_id"] for row in taken} == set(invocations)
    rows = await owner.fetch(
        "select lifecycle from jobs_internal.target_execution where ordinal = 1"
    )
    assert [row[0] for row in rows] == ["Succeeded"] * 2
    assert len(await execution.told()) == 2


async def test_live_invocations_are_those_of_reserved_and_running_tasks(execution):
    one, two, three = await execution.reserve(1, 2, 3)
    await execution.report(starts=[two, three], results=[three | SUCCEEDED])

    rows = await execution.ask("live_invocations", EPOCH)

    assert {str(row[0]) for row in rows} == {one["invocation_id"], two["invocation_id"]}


@pytest.mark.parametrize("kind", ["starts", "commits", "results", "returns"])
async def test_a_report_with_other_field_names_is_refused_as_a_whole(execution, kind):
    """A host that took its report for recorded would run a task that has no start."""
    (key,) = await execution.reserve(1)

    with pytest.raises(asyncpg.PostgresError) as caught:
        await execution.report(**{kind: [{"i": key["invocation_id"], "d": key["run_day"]}]})

    assert caught.value.sqlstate == "MU003"
    assert (await execution.task(1))["lifecycle"] == "Created"
