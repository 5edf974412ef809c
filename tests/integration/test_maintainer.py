"""Muster's own jobs stay as they are, and what they are for is done."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from engine.process.exit_codes import Fenced
from engine.core.maintainer import HISTORY, LOST_TASKS, PARTITIONS, STATISTICS, Maintainer
from engine.core.maintenance import Q
from tests.support.definitions import a_definer, some_steps
from tests.support.executions import a_job, a_session
from tests.support.launching import until
from tests.support.core_services import a_store, core_context, running

pytestmark = [pytest.mark.newest, pytest.mark.deep]

NAMES = ["adhoc", HISTORY, LOST_TASKS, PARTITIONS, STATISTICS]
SYSTEM = (
    "select name, description, version, enabled, schedule_type, schedule_interval_type, schedule_interval_count,"
    " schedule_interval, schedule_cron, schedule_time_zone, schedule_start_time, schedule_end_time, misfire_policy,"
    " misfire_within_seconds, overlap, paused, priority, owner, labels, retention_days, system, deleted_at"
    " from jobs_internal.job where job_id = any($1) order by job_id"
)
REPAIRS = (
    "select detail ->> 'job_name' as job, detail -> 'differed' as differed from jobs_internal.audit"
    " where action = 'repair_system_job' order by audit_id"
)
RUNS = (
    "select x.lifecycle, x.last_message, x.origin, x.actor, x.door from jobs_internal.job_execution x"
    " join jobs_internal.job j on j.job_id = x.job_id where j.name = $1 order by x.create_time"
)
PARTITION = "select to_regclass('jobs_internal.task_' || to_char($1::date, 'YYYYMMDD')) is not null"
TODAY = datetime.now(UTC).date()


@pytest.fixture
async def store(account):
    async with a_store(account) as store:
        yield store


@pytest.fixture
async def owner(account, store):
    """With the store's epoch in charge."""
    async with a_session(account) as session:
        yield session


async def sweep(store) -> list[tuple]:
    async with store.calling() as tx:
        rows = await tx.fetch(Q.keep_system_jobs, store.epoch)
    return [(row["job_name"], json.loads(row["differed"]), row["repaired"]) for row in rows]


async def due(store, *busy: UUID) -> set[str]:
    async with store.calling() as tx:
        return {row["job_name"] for row in await tx.fetch(Q.due_duties, store.epoch, list(busy))}


async def system(account) -> tuple[list[UUID], list[tuple]]:
    ids = [
        row[0]
        for row in await account.fetch(
            "select job_id from jobs_internal.job where system order by 1"
        )
    ]
    return ids, [tuple(row) for row in await account.fetch(SYSTEM, ids)]


async def runs(account, name: str) -> list[tuple]:
    return [tuple(row) for row in await account.fetch(RUNS, name)]


# As they must be


async def test_the_system_jobs_are_there_and_nobody_sees_them_among_the_others(
    account, admin, store
):
    made = await sweep(store)

    assert [(name, repaired) for name, _, repaired in sorted(made)] == [
        (name, True) for name in NAMES
    ]
    assert await sweep(store) == []
    rows = await admin.rows(
        "select job_name, enabled, schedule_interval_type from jobs.system_jobs order by 1"
    )
    assert rows == [
        ("adhoc", False, "Once"), (HISTORY, True, "Days"), (LOST_TASKS, True, "Minutes"),
        (PARTITIONS, True, "Days"), (STATISTICS, True, "Hours"),
    ]  # fmt: skip
    for cluster_state in ("jobs", "job_versions", "jobsteps", "jobstep_versions"):
        assert await admin.rows(f"select * from jobs.{cluster_state}") == []
    async with a_definer(account, "agent") as agent:
        page = await agent.call(
            "list_items", p_kind="jobs", p_path=[], p_after=None, p_top=100, p_filters={}
        )
        assert page["items"] == []
        for kind, path in {"jobs": [HISTORY], "jobs/versions": [HISTORY, "0"]}.items():
            await agent.refused("MU010", "get_item", p_kind=kind, p_path=path)


EDITS = {
    "renamed": "update jobs_internal.job set name = 'mine now' where job_id = $1",
    "described": "update jobs_internal.job set description = 'x' where job_id = $1",
    "disabled": "update jobs_internal.job set enabled = not enabled where job_id = $1",
    "slowed": "update jobs_internal.job set schedule_type = 'Recurring', schedule_interval_type = 'Months' where job_id = $1",
    "cron": "update jobs_internal.job set schedule_type = 'Recurring', schedule_interval_type = 'Once',"
            " schedule_cron = '0 0 1 1 *' where job_id = $1",
    "ended": "update jobs_internal.job set schedule_end_time = now() where job_id = $1",
    "paused": "update jobs_internal.job set paused = true where job_id = $1",
    "owned": "update jobs_internal.job set owner = 'me', labels = '{\"a\": \"b\"}', priority = 5 where job_id = $1",
    "kept": "update jobs_internal.job set retention_days = 36500 where job_id = $1",
    "overlap": "update jobs_internal.job set overlap = 'cancelPrevious' where job_id = $1",
    "ordinary": "update jobs_internal.job set system = false where job_id = $1",
    "hidden": "update jobs_internal.job set deleted_at = now(), next_slot = null where job_id = $1",
    "never": "update jobs_internal.job set next_slot = 'infinity' where job_id = $1",
    "deleted": "delete from jobs_internal.job where job_id = $1",
}  # fmt: skip


@pytest.mark.parametrize("name", ["adhoc", HISTORY, LOST_TASKS])
async def test_whatever_somebody_does_to_a_system_job_is_undone_and_recorded(account, store, name):
    await sweep(store)
    ids, right = await system(account)
    job = (await account.fetch("select job_id from jobs_internal.job where name = $1", name))[0][0]

    for edit, statement in EDITS.items():
        recorded = len(await account.fetch(REPAIRS))
        await account.fetch(statement, job)

        found = await sweep(store)

        assert [(each[0], each[2]) for each in found] == [(name, True)], edit
        assert (await system(account)) == (ids, right), edit
        notes = (await account.fetch(REPAIRS))[recorded:]
        assert [(row[0], json.loads(row[1])) for row in notes] == [(name, found[0][1])], edit
        assert found[0][1] != {}
        assert await sweep(store) == []


async def test_what_differed_is_told_with_the_value_it_had(account, store):
    await sweep(store)
    await account.execute(
        f"update jobs_internal.job set paused = true, priority = 7 where name = '{HISTORY}'"
    )

    assert await sweep(store) == [(HISTORY, {"paused": "true", "priority": "7"}, True)]


async def test_the_queries_of_adhoc_stay(account, store, owner):
    await sweep(store)
    await owner.execute(
        "update jobs_internal.job set version = 3, description = 'x' where name = 'adhoc'"
    )

    await sweep(store)

    assert await owner.fetchval("select version from jobs_internal.job where name = 'adhoc'") == 3


async def test_a_name_that_is_taken_is_told_and_the_others_are_kept(account, store, owner):
    await a_job(owner, "adhoc")

    found = {name: repaired for name, _, repaired in await sweep(store)}

    assert found == {name: name != "adhoc" for name in NAMES}
    await owner.execute("update jobs_internal.job set name = 'free' where name = 'adhoc'")
    assert await sweep(store) == [("adhoc", {"job": "missing"}, True)]


@pytest.mark.parametrize("edit", ["renamed", "hidden", "ordinary", "overlap", "deleted"])
async def test_the_job_of_queries_is_the_same_for_whoever_makes_it_first(store, owner, edit):
    made = await owner.fetchval("select job_id from jobs_internal.ensure_adhoc_job()")
    assert "adhoc" not in {name for name, _, _ in await sweep(store)}

    await owner.execute(EDITS[edit], made)
    if edit != "ordinary":  # then it is somebody's own until it is repaired
        assert await owner.fetchval("select job_id from jobs_internal.ensure_adhoc_job()") == made
    await sweep(store)

    rows = await owner.fetch("select job_id from jobs_internal.job where name = 'adhoc' and system")
    assert [row[0] for row in rows] == [made]


async def test_a_system_job_that_somebody_holds_keeps_nobody_waiting(account, store, owner):
    await sweep(store)
    await owner.execute("update jobs_internal.job set paused = true where system")
    async with a_session(account) as other, other.transaction():
        await other.execute("update jobs_internal.job set priority = 1 where name = $1", HISTORY)
        found = {name: repaired for name, _, repaired in await sweep(store)}
        assert found == {name: name != HISTORY for name in NAMES}

    assert [(name, repaired) for name, _, repaired in await sweep(store)] == [(HISTORY, True)]


async def test_people_cannot_start_edit_or_delete_them_nor_take_their_names(account, admin, store):
    await some_steps(admin, "a", job="mine")
    for _ in range(2):  # before they are made, and after
        for name in (*NAMES, "Adhoc", HISTORY.upper()):
            error = await admin.refused("MU011", "sp_add_job", job_name=name)
            assert "system job" in str(error)
            await admin.refused("MU011", "sp_update_job", job_name="mine", new_name=name)
        await sweep(store)
    for name in NAMES:
        for function, more in {
            "sp_start_job": {},
            "sp_update_job": {"enabled": True},
            "sp_delete_job": {"force": True},
            "sp_add_jobstep": {"step_name": "b", "command": "x", "target_group_name": "all"},
        }.items():
            error = await admin.refused("MU013", function, job_name=name, **more)
            assert "system job" in str(error)
    async with a_definer(account, "agent") as agent:
        for name in NAMES:
            await agent.refused("MU013", "put_job", p_name=name, p_doc={}, p_condition={})
            await agent.refused("MU013", "start_job", p_job=name, p_execution_id=None, p_doc={})
            answer = await agent.call(
                "delete_item",
                p_kind="jobs",
                p_path=[name],
                p_condition={},
                p_options={"force": True},
            )
            assert answer == {"deleted": False}


async def test_a_group_that_only_a_query_named_can_be_deleted(account, admin, store, owner):
    await sweep(store)
    await some_steps(admin, "a", job="mine")
    await owner.execute(
        "update jobs_internal.job set system = true, name = 'a query' where name = 'mine'"
    )

    await admin.call("sp_delete_target_group", target_group_name="all")

    assert await admin.rows("select * from jobs.target_groups") == []


# Duties


async def test_at_the_start_there_is_room_and_every_duty_is_done(account, admin, store):
    told = []

    async def lost():
        told.append("lost")

    maintainer = Maintainer(core_context(account, store), {LOST_TASKS: lost})
    async with running(maintainer):

        async def settled():
            rows = await admin.rows(
                "select job_name from jobs.system_jobs where next_run_time > now()"
            )
            return len(rows) == 4 and not maintainer._duty_tasks

        await until(settled)

    for day in (TODAY, TODAY + timedelta(days=1)):
        assert (await account.fetch(PARTITION, day))[0][0]
    nothing = ("Succeeded", "There was nothing to do.", "system", "muster", "engine")
    assert await runs(account, HISTORY) == await runs(account, PARTITIONS) == [nothing]
    assert told == ["lost"] and await runs(account, LOST_TASKS) == []
    last = await admin.rows(
        "select last_lifecycle, last_message from jobs.system_jobs where job_name = $1", HISTORY
    )
    assert last == [nothing[:2]]


async def test_runs_of_duties_are_shown_with_the_system_jobs_only(account, admin, store):
    async with running(Maintainer(core_context(account, store))):
        await until(lambda: _done(account, HISTORY))

    assert await admin.rows("select * from jobs.job_executions") == []
    async with a_definer(account, "agent") as agent:
        page = await agent.call(
            "list_items", p_kind="executions", p_path=[], p_after=None, p_top=100, p_filters={}
        )
    assert page["items"] == []


async def _done(account, name: str) -> bool:
    return any(row[0] == "Succeeded" for row in await runs(account, name))


async def test_a_repair_needs_one_sweep_of_the_running_part(account, store):
    async with running(Maintainer(core_context(account, store))):
        await until(lambda: _done(account, HISTORY))
        await account.execute(
            f"update jobs_internal.job set enabled = false, name = 'x' where name = '{HISTORY}'"
        )

        async def repaired():
            rows = await account.fetch(
                "select enabled from jobs_internal.job where name = $1", HISTORY
            )
            return [row[0] for row in rows] == [True]

        await until(repaired)


async def test_a_quiet_duty_tells_what_it_did(account, store):
    async def lost():
        return "2 tasks were taken up."

    async with running(Maintainer(core_context(account, store), {LOST_TASKS: lost})):
        await until(lambda: _done(account, LOST_TASKS))

    assert await runs(account, LOST_TASKS) == [
        ("Succeeded", "2 tasks were taken up.", "system", "muster", "engine")
    ]


async def test_a_duty_that_fails_is_recorded_comes_again_and_harms_no_other(account, store):
    async def lost():
        raise RuntimeError("a mistake of ours")

    async def forget():
        raise RuntimeError("another")

    service = Maintainer(core_context(account, store), {LOST_TASKS: lost, HISTORY: forget})
    async with running(service):

        async def ended():
            both = await runs(account, LOST_TASKS) + await runs(account, HISTORY)
            return len([row for row in both if row[0] == "Failed"]) == 2 and not service._duty_tasks

        await until(ended)
        await until(lambda: _done(account, PARTITIONS))

    assert {row[1] for row in await runs(account, HISTORY)} == {"It failed: RuntimeError."}
    soon = await account.fetch(
        "select next_slot between now() + interval '5 min' and now() + interval '10 min'"
        "  from jobs_internal.job where name = $1", HISTORY,
    )  # fmt: skip
    assert soon[0][0]


async def test_what_was_left_half_done_has_failed_and_is_done_again(account, store):
    await sweep(store)
    job = (await account.fetch("select job_id from jobs_internal.job where name = $1", HISTORY))[0][
        0
    ]
    run = uuid4()
    async with store.calling() as tx:
        assert await tx.fetchval(Q.begin_duty, 1, job, run)

    assert HISTORY not in await due(store, job)
    async with a_store(account, 2) as newer:
        assert HISTORY in await due(newer)

    assert [row[:2] for row in await runs(account, HISTORY)] == [
        ("Failed", "It was broken off: the engine stopped, or the control database was away.")
    ]


async def test_a_duty_is_due_once_an_interval(account, store):
    await sweep(store)
    ids = {
        row[1]: row[0] for row in await account.fetch("select job_id, name from jobs_internal.job")
    }
    assert await due(store) == set(NAMES) - {"adhoc"}
    async with store.calling() as tx:
        for name in (HISTORY, LOST_TASKS):
            assert await tx.fetchval(Q.begin_duty, 1, ids[name], None)

    assert await due(store) == {PARTITIONS, STATISTICS}
    await account.execute(
        "update jobs_internal.job set next_slot = now() where next_slot < now() + interval '2 min'"
    )
    assert await due(store) == {PARTITIONS, STATISTICS, LOST_TASKS}
    assert await due(store, ids[LOST_TASKS]) == {PARTITIONS, STATISTICS}


async def test_an_account_that_is_going_has_no_duties(account, store):
    service = Maintainer(core_context(account, store, draining=True))
    async with running(service):

        async def swept():
            return service._swept_at is not None

        await until(swept)

    assert await account.fetch("select from jobs_internal.job_execution") == []


async def test_a_stale_epoch_ends_it(account, store):
    service = Maintainer(core_context(account, store))
    async with a_store(account, 2):
        with pytest.raises(Fenced):
            await service.run(asyncio.Event())


async def test_a_stale_epoch_that_a_duty_finds_ends_it_too(account, store):
    taken = contextlib.AsyncExitStack()

    async def lost():
        await taken.enter_async_context(a_store(account, 2))
        raise Fenced("epoch 1 came too late")

    async with taken:
        with pytest.raises(Fenced):
            await Maintainer(core_context(account, store), {LOST_TASKS: lost}).run(asyncio.Event())
