"""What the engine asks of the control database: questions, groups, snapshots and planned targets."""

import hashlib
import json
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import (
    EPOCH,
    PLAN,
    a_job,
    a_run,
    a_snapshot,
    a_step,
)

ASK = "select jobs_internal.create_request($1, $2, $3::text::jsonb)::text"
READ = "select jobs_internal.read_request($1)::text"
OPEN = "select request_id, kind, args::text from jobs_internal.open_requests($1)"
ANSWER = "select jobs_internal.answer_request($1, $2, $3::text::jsonb)"
DOCUMENT = "select jobs_internal.group_document($1)::text"
MEMBER = """
insert into jobs_internal.target_group_member
    (target_group_id, position, target_type, server_name, server_id, database_name, nested_group_id,
     refresh_credential_id)
values ($1, $2, $3, $4, '/servers/' || $4, $5, $6, $7) returning target_id
"""
SERVER = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, worker_pool, job_credential, revision)
values ($1, $2, '{h}', 5432, 'disable', $3, $4, 0)
"""
CREDENTIAL = """
insert into jobs_internal.credential (name, username, secret, created_by, modified_by)
values ($1, 'u', 'env:X', 'test', 'test') returning credential_id
"""
RESOLVE = json.dumps({"targetGroup": "everything"})
STORE = """
select jobs_internal.store_snapshot(1, $1, $2, '\\x01', 5, '[{"database": "postgres"}]', $3, $4, $5,
                                       $6, $7, $8, $9::text[]::jsonb[], $10, $11)
"""


async def group(owner, name: str) -> UUID:
    return await owner.fetchval(
        "insert into jobs_internal.target_group (name, created_by, modified_by)"
        " values ($1, 'test', 'test') returning target_group_id",
        name,
    )


async def refused(session, statement, *args) -> str:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await session.fetch(statement, *args)
    return caught.value.sqlstate


async def test_a_question_is_asked_answered_and_read(account, owner):
    await group(owner, "Everything")
    agent, engine, asked = await account.connect("agent"), await account.connect("engine"), uuid4()
    heard = []
    await engine.add_listener("muster_request", lambda *said: heard.append(said[3]))

    assert await agent.fetchval(ASK, asked, "resolve", RESOLVE) == "{}"
    assert await agent.fetchval(ASK, asked, "resolve", RESOLVE) == "{}"
    assert json.loads(await agent.fetchval(READ, asked)) == {"answered": False, "answer": None}
    opened = await engine.fetch(OPEN, EPOCH)
    await engine.execute(ANSWER, EPOCH, asked, '{"targets": []}')
    await engine.execute(ANSWER, EPOCH, asked, '{"targets": [1]}')

    assert [(row[0], row[1]) for row in opened] == [(asked, "resolve")]
    args = json.loads(opened[0][2])
    assert args.pop("askedBy").endswith("_agent")  # no caller was named
    assert args == json.loads(RESOLVE)
    assert json.loads(await agent.fetchval(READ, asked)) == {
        "answered": True,
        "answer": {"targets": []},
    }
    assert await engine.fetch(OPEN, EPOCH) == []
    assert heard and set(heard) == {""}
    await agent.close()
    await engine.close()


async def test_questions_that_nobody_can_answer_are_refused(owner):
    await group(owner, "everything")
    asked = uuid4()
    await owner.execute(ASK, asked, "resolve", RESOLVE)

    assert await refused(owner, ASK, uuid4(), "guess", RESOLVE) == "MU012"
    assert await refused(owner, ASK, uuid4(), "resolve", '{"targetGroup": "never"}') == "MU010"
    assert await refused(owner, ASK, uuid4(), "resolve", "{}") == "MU010"
    other = json.dumps({"targetGroup": "EVERYTHING"})
    assert await refused(owner, ASK, asked, "resolve", other) == "MU017"
    assert await refused(owner, READ, uuid4()) == "MU010"
    for statement, args in ((OPEN, ()), (ANSWER, (asked, "{}"))):
        assert await refused(owner, statement, EPOCH + 1, *args) == "MU001"


async def test_what_a_group_is_used_for_counts_current_steps_and_groups_around_it(owner):
    outer, inner = await group(owner, "outer"), await group(owner, "inner")
    await owner.execute(
        "insert into jobs_internal.target_group_member (target_group_id, position, target_type, nested_group_id)"
        " values ($1, 1, 'TargetGroup', $2)", outer, inner,
    )  # fmt: skip
    guarded = '{"guard": "job", "settings": {"role": "boss"}}'
    for job, name, options in (
        ("kept", "inner", "{}"),
        ("kept", "outer", guarded),
        ("gone", "inner", "{}"),
    ):
        await owner.execute(
            "select jobs.sp_add_job(job_name => $1)"
            " where not exists (select from jobs_internal.job where name = $1)",
            job,
        )
        await owner.execute(
            "select jobs.sp_add_jobstep(job_name => $1, step_name => 'in ' || $2, command => 'create table t ()',"
            "                           target_group_name => $2, options => $3::text::jsonb)",
            job, name, options,
        )  # fmt: skip
    await owner.execute("select jobs.sp_delete_job('gone')")

    rows = await owner.fetch("select * from jobs_internal.group_uses('INNER')")

    assert [tuple(row) for row in rows] == [
        (None, None, False, True, ["kept/in inner"]),
        (None, "boss", True, True, ["kept/in outer"]),
    ]


async def test_old_questions_are_forgotten(owner):
    await group(owner, "everything")
    old, new = uuid4(), uuid4()
    for asked in (old, new):
        await owner.execute(ASK, asked, "resolve", RESOLVE)
    await owner.execute(
        "update jobs_internal.request set asked_at = now() - interval '61 minutes'"
        " where request_id = $1",
        old,
    )

    await owner.execute(ANSWER, EPOCH, new, "{}")

    assert await refused(owner, READ, old) == "MU010"
    assert json.loads(await owner.fetchval(READ, new))["answered"] is True


async def test_a_group_s_document_holds_all_that_resolving_needs(owner):
    outer, inner = await group(owner, "Outer"), await group(owner, "inner")
    await group(owner, "stranger")
    refresh, server_s, unused = [await owner.fetchval(CREDENTIAL, n) for n in ("R", "S", "U")]
    await owner.execute(SERVER, "/servers/one", "one", None, "s")
    second = await owner.fetchval(MEMBER, outer, 2, "TargetGroup", None, None, inner, None)
    first = await owner.fetchval(MEMBER, outer, 1, "SqlDatabase", "one", "a", None, None)
    await owner.fetchval(MEMBER, inner, 1, "SqlServer", "one", None, None, refresh)

    document = json.loads(await owner.fetchval(DOCUMENT, "outer"))

    assert document["targetGroupId"] == str(outer)
    assert set(document["groups"]) == {str(outer), str(inner)}
    assert document["groups"][str(outer)] == {
        "name": "Outer",
        "members": [
            {"targetId": str(first), "membershipType": "Include", "type": "SqlDatabase",
             "serverName": "one", "serverId": "/servers/one", "databaseName": "a"},
            {"targetId": str(second), "membershipType": "Include", "type": "TargetGroup",
             "targetGroupId": str(inner)},
        ],
    }  # fmt: skip
    assert set(document["credentials"]) == {str(refresh), str(server_s)}
    assert str(unused) not in document["credentials"]
    assert document["credentials"][str(refresh)] == {
        "name": "R",
        "username": "u",
        "secret": "env:X",
        "servers": None,
    }
    assert document["directory"]["revision"] == 0
    assert document["directory"]["servers"][0]["server_id"] == "/servers/one"
    assert UUID(document["identity"])
    await owner.execute("update jobs_internal.target_group_member set database_name = 'b'")
    assert json.loads(await owner.fetchval(DOCUMENT, "outer"))["hash"] != document["hash"]
    assert await refused(owner, DOCUMENT, "never") == "MU010"


async def test_a_group_without_members_has_a_document(owner):
    empty = await group(owner, "empty")

    document = json.loads(await owner.fetchval(DOCUMENT, "empty"))

    assert document["groups"][str(empty)]["members"] == []
    assert (document["credentials"], document["directory"]["servers"]) == ({}, [])


async def store(owner, rows: list[tuple[str, str | None, str | None]]) -> UUID:
    snapshot, many = uuid4(), len(rows)
    await owner.execute(
        STORE, snapshot, uuid4(), ["SqlDatabase"] * many, [row[0] for row in rows],
        ["s"] * many, [None] * many, [row[1] for row in rows], [row[2] for row in rows],
        [None, *['{"a": "b"}'] * many][:many], [None] * many, [uuid4()] * many,
    )  # fmt: skip
    return snapshot


async def stored(owner, snapshot: UUID) -> list[asyncpg.Record]:
    return await owner.fetch(
        "select * from jobs_internal.snapshot_target where snapshot_id = $1 order by ordinal",
        snapshot,
    )


async def test_a_target_has_the_same_id_in_every_snapshot_and_no_other_has_it(owner):
    rows = [("/S", "a", None), ("/s", "a", "b"), ("/s", "a/b", None), ("/s", None, None)]

    first = await stored(owner, await store(owner, rows))
    again = await stored(owner, await store(owner, [("/s", "a", None), *reversed(rows[1:])]))

    assert [row["ordinal"] for row in first] == [1, 2, 3, 4]
    assert len({row["target_id"] for row in first}) == 4
    assert {row["target_id"] for row in first} == {row["target_id"] for row in again}
    assert [row["labels"] for row in first[:2]] == ["{}", '{"a": "b"}']


async def test_the_hash_is_that_of_the_targets_in_their_order(owner):
    rows = [("/s", "a", None), ("/s", "b", None)]
    read = (
        "select targets, targets_hash, left_out from jobs_internal.snapshot where snapshot_id = $1"
    )

    snapshot = await store(owner, rows)

    row = await owner.fetchrow(read, snapshot)
    ids = b"".join(each["target_id"].bytes for each in await stored(owner, snapshot))
    assert (row["targets"], row["targets_hash"]) == (2, hashlib.sha256(ids).digest())
    assert json.loads(row["left_out"]) == [{"database": "postgres"}]
    other = await store(owner, rows[::-1])
    assert (await owner.fetchrow(read, other))["targets_hash"] != row["targets_hash"]
    empty = await store(owner, [])
    assert (await owner.fetchrow(read, empty))["targets"] == 0


async def test_a_target_stands_once_in_a_snapshot(owner):
    with pytest.raises(asyncpg.UniqueViolationError):
        await store(owner, [("/s", "a", None), ("/S", "a", None)])


async def test_a_stored_snapshot_is_not_stored_again_and_a_stale_engine_stores_none(owner):
    snapshot, args = (
        uuid4(),
        (uuid4(), ["SqlDatabase"], ["/s"], ["s"], [None], ["a"], [None], ["{}"], [None], [uuid4()]),
    )

    for _ in range(2):
        assert await owner.fetchval(STORE, snapshot, *args) == 1

    assert len(await stored(owner, snapshot)) == 1
    assert (
        await refused(owner, STORE.replace("snapshot(1,", "snapshot(2,"), uuid4(), *args) == "MU001"
    )


async def planned(owner) -> list[asyncpg.Record]:
    return await owner.fetch("select * from jobs_internal.target_execution order by ordinal")


async def test_every_target_is_planned_once(owner):
    await owner.execute(SERVER, "/servers/2", "two", "gpu", None)
    job = await a_job(owner)
    await owner.execute("update jobs_internal.job set priority = 7")
    run = await a_run(owner, job)
    await a_step(owner, run)
    snapshot = await a_snapshot(owner, job.group, 5)

    for skipped in ([], None):  # the second time they are planned already
        assert await owner.fetchval(PLAN, run, 1, snapshot, [2, 4]) == skipped

    rows = await planned(owner)
    assert [row["ordinal"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["wave"] for row in rows] == [1, 2, 2, 3, 3]
    assert [row["worker_pool"] for row in rows] == [None, "gpu", None, None, None]
    assert {(row["lifecycle"], row["priority"], row["snapshot_id"]) for row in rows} == {
        ("Created", 7, snapshot)
    }
    assert len({row["target_execution_id"] for row in rows}) == 5
    step = await owner.fetchrow("select snapshot_id, waves from jobs_internal.step_execution")
    assert tuple(step) == (snapshot, 3)


async def test_without_waves_there_is_one(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await a_step(owner, run)
    snapshot = await a_snapshot(owner, job.group, 3)

    await owner.execute(PLAN, run, 1, snapshot, [])

    assert {row["wave"] for row in await planned(owner)} == {1}


async def test_a_step_keeps_the_targets_it_has(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await a_step(owner, run)
    snapshot, other = [await a_snapshot(owner, job.group, 2) for _ in range(2)]

    await owner.execute(PLAN, run, 1, snapshot, [])
    assert await refused(owner, PLAN, run, 1, other, []) == "MU013"
    assert await refused(owner, PLAN, run, 2, snapshot, []) == "MU013"

    assert len(await planned(owner)) == 2


JOIN = """
select * from jobs_internal.join_targets(1, $1, 1, $2, $3, $4, $4, $5, $6, $7, $8::text[]::jsonb[], $9, $10, '{2}')
"""


async def a_planned_step(owner):
    """Of two targets, the second of which is a server that could not be listed."""
    job = await a_job(owner)
    run = await a_run(owner, job)
    await a_step(owner, run)
    snapshot = await a_snapshot(owner, job.group, 2)
    await owner.execute(
        "update jobs_internal.snapshot_target set database_name = null, target_type = 'SqlServer'"
        " where snapshot_id = $1 and ordinal = 2",
        snapshot,
    )
    await owner.execute(PLAN, run, 1, snapshot, [2])
    return run, snapshot


async def join(owner, run, snapshot, *databases: str, unlisted: int = 2):
    server = await owner.fetchval(
        "select server_id from jobs_internal.snapshot_target where snapshot_id = $1 and ordinal = 1", snapshot
    )  # fmt: skip
    number, rule = len(databases), uuid4()
    columns = (
        ["SqlDatabase"] * number,
        [server] * number,
        [None] * number,
        list(databases),
        [None] * number,
    )
    return await owner.fetch(
        JOIN, run, unlisted, *columns, ["{}"] * number, [None] * number, [rule] * number
    )  # fmt: skip


async def test_listed_targets_take_the_place_of_their_server_after_the_last_target(owner):
    run, snapshot = await a_planned_step(owner)
    there = (await stored(owner, snapshot))[0]["database_name"]

    rows = await join(owner, run, snapshot, "new1", there, "new2")
    again = await join(owner, run, snapshot, "new3")

    assert [(row["ordinal"], row["database_name"]) for row in rows[1:]] == [
        (3, "new1"),
        (4, "new2"),
    ]
    assert again == []
    assert [(row["ordinal"], row["wave"]) for row in await planned(owner)] == [
        (1, 1),
        (3, 2),
        (4, 2),
    ]
    joined = json.loads(await owner.fetchval("select joined::text from jobs_internal.snapshot"))
    assert [(each["attempts"], each["targets"]) for each in joined] == [(0, 2)]


@pytest.mark.parametrize(
    "change",
    [
        "update jobs_internal.step_execution set cancel_requested_at = now()",
        "update jobs_internal.job_execution set cancel_requested_at = now()",
        "update jobs_internal.step_execution set aborted_at = now()",
        "update jobs_internal.target_execution set lifecycle = 'TimedOut', end_time = now() where ordinal = 2",
    ],
)
async def test_nothing_joins_a_step_whose_server_ended_or_which_is_cancelled(owner, change):
    run, snapshot = await a_planned_step(owner)
    await owner.execute(change)

    assert await join(owner, run, snapshot, "new1") == []
    assert [row["ordinal"] for row in await planned(owner)] == [1, 2]


async def test_a_stale_core_lets_no_target_join(owner):
    run, snapshot = await a_planned_step(owner)
    await owner.execute("update jobs_internal.instance set epoch = 2")

    with pytest.raises(asyncpg.PostgresError) as refused:
        await join(owner, run, snapshot, "new1")
    assert refused.value.sqlstate == "MU001"
