"""Runs and steps from their beginning to their end: overlap, what is planned, and the rule of parents."""

import asyncio
import json
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import EPOCH, PLAN, a_job, a_run, a_snapshot
from tests.support.execution_fixture import (
    FAILED, LIVE_RUNS, SUCCEEDED, Q, ExecutionFixture, a_host, an_execution, another_run, set_steps, waits,
)  # fmt: skip

pytestmark = [pytest.mark.newest, pytest.mark.deep]

RUN = "select * from jobs_internal.job_execution where job_execution_id = $1"


@pytest.fixture
async def execution(owner, engine):
    return await an_execution(owner, engine, steps=2)


async def begin(engine, run: UUID) -> str:
    return await engine.fetchval(Q.begin_run, EPOCH, run)


async def runs_of(owner, overlap: str, number: int) -> list[UUID]:
    job = await a_job(owner)
    await owner.execute("update jobs_internal.job set overlap = $1", overlap)
    return [await a_run(owner, job) for _ in range(number)]


async def lives(owner, run: UUID) -> tuple[str, str | None, str | None]:
    row = await owner.fetchrow(RUN, run)
    return row["lifecycle"], row["wait_reason"], row["end_reason"]


async def test_nothing_begins_while_the_account_is_paused(owner, engine):
    [run] = await runs_of(owner, "allow", 1)
    await owner.execute("select jobs.sp_pause()")

    assert await begin(engine, run) == "Paused"
    assert await lives(owner, run) == ("Created", "AccountPaused", None)

    await owner.execute("select jobs.sp_resume()")
    assert await begin(engine, run) == "Begun"
    assert await lives(owner, run) == ("InProgress", None, None)


async def test_live_runs_come_with_their_steps_and_how_far_they_are(execution, owner):
    await set_steps(owner, max_parallelism=4, timeout_seconds=9, options={"advance": "barrier"})
    await owner.execute("update jobs_internal.job set paused = true, priority = 3")
    await owner.execute("update jobs_internal.step_execution set cancel_requested_at = now()")
    younger = await a_run(owner, await a_job(owner, "other"))
    system = await a_job(owner, "kept", steps=0)
    await owner.execute("update jobs_internal.job set system = true where name = 'kept'")
    await owner.execute(
        "insert into jobs_internal.job_execution (job_execution_id, job_id, job_version, run_day, origin, actor, door)"
        " values (gen_random_uuid(), $1, 0, $2, 'system', 'x', 'engine')",
        system.id, execution.day,
    )  # fmt: skip

    rows = await execution.engine.fetch(LIVE_RUNS, EPOCH, [])

    assert [row["job_execution_id"] for row in rows] == [execution.run, younger]
    first, run = rows[0], await execution.row()
    assert tuple(first)[:11] == (
        execution.run, execution.job.id, "nightly", 1, execution.day, run["create_time"], 0, "skipTarget",
        "WaitingForChildJobExecutions", True, None,
    )  # fmt: skip
    assert json.loads(first["overrides"]) == {}
    group = {"targetGroupId": str(execution.job.group), "targetGroupName": "everything"}
    rest = group | {"maxParallelism": 4, "timeoutSeconds": 9, "options": {"advance": "barrier"}}
    rest |= {"credentialId": None}
    assert json.loads(first["steps"]) == [{"stepId": n, "name": f"step{n}"} | rest for n in (1, 2)]
    assert json.loads(first["reached"]) == [
        {
            "stepId": 1, "lifecycle": "WaitingForChildJobExecutions",
            "snapshotId": str(execution.snapshot), "cancelRequested": True, "aborted": False,
        }
    ]  # fmt: skip
    assert json.loads(rows[1]["reached"]) == []
    known = await execution.engine.fetch(LIVE_RUNS, EPOCH, [execution.run])
    assert [row["job_execution_id"] for row in known] == [younger]
    assert await execution.engine.fetch(LIVE_RUNS, EPOCH, [execution.run, younger]) == []


async def test_a_rollout_of_a_run_is_that_of_the_first_step_of_a_chain(execution, owner):
    await owner.execute(
        "update jobs_internal.job_execution set overrides = $1", '{"rollout": {"waves": [1]}}'
    )
    await set_steps(owner, options={"advance": "perTarget"})

    (row,) = await execution.engine.fetch(LIVE_RUNS, EPOCH, [])

    assert [step["options"] for step in json.loads(row["steps"])] == [{"advance": "perTarget"}] * 2


async def test_of_two_starts_of_a_plan_at_once_the_second_is_refused(owner, account):
    job, plan = await a_job(owner, steps=1), uuid4()
    snapshot = await a_snapshot(owner, job.group, 1)
    await owner.execute(
        "insert into jobs_internal.plan (plan_id, job_id, job_version, document, created_by)"
        " values ($1, $2, 1, '{}', 'anna')", plan, job.id,
    )  # fmt: skip
    await owner.execute(
        "insert into jobs_internal.plan_snapshot values ($1, 1, $2)", plan, snapshot
    )
    start = "select jobs.sp_start_job('nightly', plan_id => $1)"
    early, late = [await account.connect("root") for _ in range(2)]
    transaction = early.transaction()
    await transaction.start()
    run = await early.fetchval(start, plan)
    later = asyncio.create_task(late.execute(start, plan))
    await waits(owner, late)

    await transaction.commit()

    with pytest.raises(asyncpg.PostgresError, match=f"started before, as execution {run}"):
        await later
    await early.close()
    await late.close()


async def test_a_run_begins_once(owner, engine):
    run = await a_run(owner, await a_job(owner))

    assert await begin(engine, run) == "Begun"
    first = await owner.fetchrow(RUN, run)
    assert await begin(engine, run) == "Begun"

    assert (first["lifecycle"], first["wait_reason"]) == ("InProgress", None)
    assert first["start_time"] is not None
    assert await owner.fetchrow(RUN, run) == first


async def test_a_run_cancelled_before_it_begins_never_does(owner, engine):
    run = await a_run(owner, await a_job(owner))
    await owner.execute("update jobs_internal.job_execution set cancel_requested_at = now()")
    await owner.execute(
        "insert into jobs_internal.cancellation (job_execution_id, requested_by, door)"
        " values ($1, 'x', 'rest')",
        run,
    )

    assert await begin(engine, run) == "Canceled"
    assert await begin(engine, run) == "Over"

    assert await lives(owner, run) == ("Canceled", None, "Canceled")
    assert await owner.fetchval("select needed from jobs.job_cancellations") == "nothing"


@pytest.mark.parametrize(
    ("overlap", "answers", "after"),
    [
        ("allow", ["Begun", "Begun", "Begun"], ["Begun", "Begun"]),
        ("skipTarget", ["Begun", "Begun", "Begun"], ["Begun", "Begun"]),
        ("skipExecution", ["Begun", "Skipped", "Skipped"], ["Over", "Over"]),
        ("queueOne", ["Begun", "Queued", "Skipped"], ["Begun", "Over"]),
        ("cancelPrevious", ["Begun", "Queued", "Queued"], ["Over", "Begun"]),
    ],
)
async def test_a_run_begins_as_the_job_s_way_with_older_ones_wants(
    owner, engine, overlap, answers, after
):
    runs = await runs_of(owner, overlap, 3)

    said = [await begin(engine, run) for run in runs]
    repeated = [await begin(engine, run) for run in runs]
    await engine.execute(Q.reach_step, EPOCH, runs[0], 1)
    await engine.execute(Q.end_step, EPOCH, runs[0], 1, "TargetsUnresolved", None)
    await engine.execute(Q.end_run, EPOCH, runs[0])

    assert said == answers
    assert repeated == [{"Skipped": "Over"}.get(each, each) for each in answers[:1]] + [
        "Over" if each == "Skipped" or (overlap == "cancelPrevious" and n == 1) else each
        for n, each in enumerate(answers[1:], start=1)
    ]
    assert [await begin(engine, run) for run in runs[1:]] == after
    for run, answer in zip(runs, said, strict=True):
        if answer == "Skipped":
            assert await lives(owner, run) == ("Skipped", None, "Overlap")


async def test_a_queued_run_says_why_it_waits(owner, engine):
    first, second = await runs_of(owner, "queueOne", 2)
    await begin(engine, first)

    await begin(engine, second)

    assert await lives(owner, second) == ("Created", "Overlap", None)


async def test_order_is_by_creation_whoever_is_asked_first(owner, engine):
    first, second, third = await runs_of(owner, "queueOne", 3)

    assert [await begin(engine, run) for run in (second, third, first)] == [
        "Queued", "Skipped", "Begun",
    ]  # fmt: skip


async def test_a_newer_run_asks_older_ones_to_stop(owner, engine):
    first, second, third = await runs_of(owner, "cancelPrevious", 3)
    await begin(engine, first)
    heard: list[str] = []
    await engine.add_listener("muster_execution", lambda *said: heard.append(said[3]))

    await begin(engine, second)
    await begin(engine, third)

    rows = [await owner.fetchrow(RUN, run) for run in (first, second, third)]
    assert [(row["lifecycle"], row["wait_reason"]) for row in rows] == [
        ("InProgress", None), ("Canceled", None), ("Created", "Overlap"),
    ]  # fmt: skip
    assert [row["cancel_requested_at"] is not None for row in rows] == [True, True, False]
    said = await owner.fetch(
        "select job_execution_id, requested_by, door, reason, needed from jobs.job_cancellations"
        " order by requested_at"
    )
    why = "A newer run began."
    assert [tuple(row) for row in said] == [
        (first, "engine", "engine", why, None), (second, "engine", "engine", why, "nothing"),
    ]  # fmt: skip
    assert heard == ["", ""]


async def test_a_step_is_reached_once_and_only_where_there_is_one(owner, engine):
    job = await a_job(owner, steps=2)
    run = await a_run(owner, job)
    await begin(engine, run)

    for _ in range(2):
        await engine.execute(Q.reach_step, EPOCH, run, 2)

    (step,) = await owner.fetch("select * from jobs_internal.step_execution")
    assert (step["step_id"], step["step_name"], step["lifecycle"]) == (2, "step2", "Created")
    assert step["content_hash"] == await owner.fetchval("select sha256('x')")
    assert (await lives(owner, run))[0] == "WaitingForChildJobExecutions"
    for wrong in (3, 0):
        with pytest.raises(asyncpg.PostgresError) as caught:
            await engine.execute(Q.reach_step, EPOCH, run, wrong)
        assert caught.value.sqlstate == "MU013"
    await engine.execute(Q.end_step, EPOCH, run, 2, "TargetsUnresolved", None)
    await engine.execute(Q.end_run, EPOCH, run)
    assert await engine.fetchval(Q.reach_step, EPOCH, run, 1) == "Over"
    assert await owner.fetchval("select count(*) from jobs_internal.step_execution") == 1


async def test_a_planned_step_waits_for_its_targets(execution):
    step = await execution.step()

    assert (step["lifecycle"], step["snapshot_id"]) == (
        "WaitingForChildJobExecutions",
        execution.snapshot,
    )
    assert (await execution.row())["lifecycle"] == "WaitingForChildJobExecutions"


@pytest.mark.parametrize("overlap", ["skipTarget", "allow"])
async def test_targets_that_another_run_works_on_are_skipped(execution, owner, overlap):
    await owner.execute("update jobs_internal.job set overlap = $1", overlap)
    (key,) = await execution.started(1)
    await execution.report(results=[key | SUCCEEDED])
    await execution.started(2)
    stranger = await a_job(owner, "stranger")
    await another_run(owner, execution.engine, stranger, execution.host, targets=9)

    second = await another_run(owner, execution.engine, execution.job, execution.host, targets=5)

    rows = [await second.target(n) for n in range(1, 6)]
    skips = overlap == "skipTarget"
    assert [row["lifecycle"] for row in rows] == [
        "Skipped" if skips and n in {2, 3} else "Created" for n in range(1, 6)
    ]
    live = await execution.ask("live_targets", EPOCH, second.day, second.run, 1)
    assert [row["ordinal"] for row in live] == [
        n for n in range(1, 6) if not (skips and n in {2, 3})
    ]
    if skips:
        assert (rows[1]["end_reason"], rows[1]["attempts"]) == ("Overlap", 0)
        assert rows[1]["last_message"].startswith("Skipped:")
        assert rows[1]["end_time"] is not None
    events = await owner.fetch(
        "select payload ->> 'stepId', payload -> 'counts' ->> 'Skipped' from jobs_internal.outbox"
        " where job_execution_id = $1 and kind = 'targetsEnded'",
        second.run,
    )
    assert list(map(tuple, events)) == ([("1", "2")] if skips else [])


async def test_a_younger_run_holds_targets_too(execution, owner):
    younger = await another_run(owner, execution.engine, execution.job, execution.host, targets=0)
    await owner.execute(
        "update jobs_internal.job_execution set create_time = create_time - interval '1 ms'"
        " where job_execution_id = $1",
        younger.run,
    )

    await younger.reach(2, 4)

    assert [(await younger.target(n, 2))["lifecycle"] for n in (1, 2, 3, 4)] == ["Skipped"] * 3 + [
        "Created"
    ]


async def test_of_two_plans_at_once_one_skips(execution, owner, engine, account):
    """Neither would see the other's targets if they went side by side."""
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, None)
    made = [await another_run(owner, engine, execution.job, execution.host) for _ in range(2)]
    snapshots = []
    for each in made:
        await begin(engine, each.run)
        await engine.execute(Q.reach_step, EPOCH, each.run, 1)
        snapshots.append(await a_snapshot(owner, execution.job.group, 2))
    early, late = [await account.connect("root") for _ in range(2)]
    transaction = early.transaction()
    await transaction.start()
    await early.execute(PLAN, made[0].run, 1, snapshots[0], [])
    later = asyncio.create_task(late.execute(PLAN, made[1].run, 1, snapshots[1], []))
    await waits(owner, late)

    await transaction.commit()
    await later

    assert [(await each.target(1))["lifecycle"] for each in made] == ["Created", "Skipped"]
    await early.close()
    await late.close()


async def test_a_failed_run_ends_while_its_job_is_being_deleted(execution, owner, account):
    """The deletion holds the row of the job and waits for the runs."""
    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    await owner.execute("update jobs_internal.job_step set retry_attempts = 0")
    await owner.execute(
        "update jobs_internal.job set enabled = true, auto_disable = $1",
        '{"failures": 1, "days": 0}',
    )
    keys = await execution.started(1, 2, 3)
    await execution.report(results=[key | FAILED for key in keys])
    deleting = await account.connect("root")
    transaction = deleting.transaction()
    await transaction.start()
    await deleting.execute("select from jobs_internal.job for update")

    await execution.ask("end_step", EPOCH, execution.run, 1, None, None)
    async with asyncio.timeout(10):
        assert await execution.value("end_run", EPOCH, execution.run) == "Failed"

    await transaction.rollback()
    await deleting.close()
    assert await owner.fetchval("select bool_and(enabled) from jobs_internal.job")


async def test_a_job_that_is_locked_for_a_moment_is_disabled_all_the_same(
    execution, owner, account
):
    """The scheduler locks due jobs while it reads them. The limit is longer here, for a busy machine."""
    await owner.execute(
        "alter function jobs_internal.auto_disable(jobs_internal.job) set lock_timeout = '60s'"
    )
    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    await owner.execute("update jobs_internal.job_step set retry_attempts = 0")
    await owner.execute(
        "update jobs_internal.job set enabled = true, auto_disable = $1",
        '{"failures": 1, "days": 0}',
    )
    keys = await execution.started(1, 2, 3)
    await execution.report(results=[key | FAILED for key in keys])
    await execution.ask("end_step", EPOCH, execution.run, 1, None, None)
    reading = await account.connect("root")
    transaction = reading.transaction()
    await transaction.start()
    await reading.execute("select from jobs_internal.job for share")

    ending = asyncio.create_task(execution.value("end_run", EPOCH, execution.run))
    await _waits_for_lock(owner)
    await transaction.rollback()
    await reading.close()

    assert await ending == "Failed"
    assert not await owner.fetchval("select enabled from jobs_internal.job where not system")


async def _waits_for_lock(owner):
    query = "select exists (select from pg_locks where not granted)"
    async with asyncio.timeout(10):
        while not await owner.fetchval(query):
            await asyncio.sleep(0)


# What the children are, whether the parent was cancelled, and what the parent is.
RULE = [
    ("Succeeded", False, "Succeeded"),
    ("Succeeded Succeeded", True, "Succeeded"),
    ("Succeeded Skipped", False, "SucceededWithSkipped"),
    ("Skipped Skipped", False, "Skipped"),
    ("Skipped Skipped", True, "Skipped"),
    ("Succeeded Canceled", False, "Canceled"),
    ("Succeeded Canceled", True, "Canceled"),
    ("Succeeded TimedOut", False, "TimedOut"),
    ("TimedOut Canceled", False, "TimedOut"),
    ("TimedOut Canceled", True, "Canceled"),
    ("TimedOut Skipped", False, "TimedOut"),
    ("Failed TimedOut Canceled Skipped Succeeded", False, "Failed"),
    ("Failed TimedOut Canceled Skipped Succeeded", True, "Canceled"),
    ("Failed Succeeded", True, "Failed"),
    ("Canceled Skipped", False, "Canceled"),
]
OF_STEPS = [
    ("SucceededWithSkipped Succeeded", False, "SucceededWithSkipped"),
    ("SucceededWithSkipped Skipped", False, "SucceededWithSkipped"),
    ("SucceededWithSkipped", True, "SucceededWithSkipped"),
    ("SucceededWithSkipped Failed", False, "Failed"),
]


async def put(owner, table: str, run: UUID, children: list[str], where: str) -> None:
    await owner.execute(f"alter table jobs_internal.{table} disable trigger user")
    for ordinal, lifecycle in enumerate(children, start=1):
        await owner.execute(
            f"update jobs_internal.{table} set lifecycle = $3, end_time = now(),"
            f" end_reason = case when $3 in ('Failed', 'Canceled') then $3 end"
            f" where job_execution_id = $1 and {where} = $2",
            run, ordinal, lifecycle,
        )  # fmt: skip
    await owner.execute(f"alter table jobs_internal.{table} enable trigger user")


@pytest.mark.parametrize("by", ["step", "run"])
@pytest.mark.parametrize(("children", "cancelled", "expected"), RULE)
async def test_a_step_ends_as_its_targets_did(owner, engine, children, cancelled, expected, by):
    ends = children.split()
    execution = await an_execution(owner, engine, targets=len(ends))
    assert await execution.value("end_step", EPOCH, execution.run, 1, "ignored", None) is None
    if cancelled:
        table = {"step": "step_execution", "run": "job_execution"}[by]
        await owner.execute(f"update jobs_internal.{table} set cancel_requested_at = now()")
    await put(owner, "target_execution", execution.run, ends, "ordinal")

    answers = [
        await execution.value("end_step", EPOCH, execution.run, 1, None, None) for _ in range(2)
    ]

    step = await execution.step()
    assert (answers, step["lifecycle"]) == ([expected] * 2, expected)
    assert step["end_reason"] == (expected if expected in {"Failed", "Canceled"} else None)
    assert step["last_message"].startswith(
        f"{ends.count('Succeeded')} of {len(ends)} targets succeeded"
    )
    assert await execution.value("end_run", EPOCH, execution.run) == expected
    assert (await execution.row())["end_time"] is not None


@pytest.mark.parametrize(("children", "cancelled", "expected"), RULE + OF_STEPS)
async def test_a_run_ends_as_its_steps_did(owner, engine, children, cancelled, expected):
    ends = children.split()
    execution = await an_execution(owner, engine, targets=0, steps=len(ends))
    for step in range(2, len(ends) + 1):
        await execution.reach(step, 0)
    assert await execution.value("end_run", EPOCH, execution.run) is None
    if cancelled:
        await owner.execute("update jobs_internal.job_execution set cancel_requested_at = now()")
    await put(owner, "step_execution", execution.run, ends, "step_id")

    answers = [await execution.value("end_run", EPOCH, execution.run) for _ in range(2)]

    run = await execution.row()
    assert (answers, run["lifecycle"]) == ([expected] * 2, expected)
    well = sum(each in {"Succeeded", "SucceededWithSkipped"} for each in ends)
    assert run["last_message"].startswith(f"{well} of {len(ends)} steps succeeded")


async def test_the_last_message_counts(owner, engine):
    execution = await an_execution(owner, engine, targets=7)
    ends = ["Succeeded", "Succeeded", "Failed", "Failed", "TimedOut", "Canceled", "Skipped"]
    await put(owner, "target_execution", execution.run, ends, "ordinal")

    await execution.value("end_step", EPOCH, execution.run, 1, None, None)

    said = "2 of 7 targets succeeded, 2 failed, 1 timed out, 1 canceled, 1 skipped."
    assert (await execution.step())["last_message"] == said


async def test_a_parent_tells_the_reason_that_its_children_agree_on(execution):
    said: list[str | None] = []
    for step, reasons in ((1, ["LockTimeout"] * 2), (2, ["StatementFailed", "LockTimeout"])):
        if step > 1:
            await execution.reach(step, 3)
        keys = await execution.started(1, 2, 3, step=step)
        failed = [key | FAILED | {"reason": why} for key, why in zip(keys, reasons, strict=False)]
        await execution.report(results=[*failed, keys[2] | SUCCEEDED])
        await execution.value("end_step", EPOCH, execution.run, step, None, None)
        said.append((await execution.step(step))["end_reason"])

    assert said == ["LockTimeout", None]


@pytest.mark.parametrize(
    ("planned", "reason", "options", "cancelled", "expected"),
    [
        (False, "TargetsUnresolved", {}, False, ("Failed", "TargetsUnresolved", "why")),
        (
            False,
            "TargetsUnresolved",
            {"allowEmpty": True},
            True,
            ("Failed", "TargetsUnresolved", "why"),
        ),
        (False, None, {}, True, ("Canceled", "Canceled", "Canceled before it had targets.")),
        (True, None, {}, False, ("Failed", "NoTargets", "The target group has no targets.")),
        (True, None, {"allowEmpty": False}, False, ("Failed", "NoTargets", None)),
        (True, None, {"allowEmpty": True}, False, ("Succeeded", None, "There were no targets.")),
        (True, None, {}, True, ("Canceled", "Canceled", None)),
    ],
)
async def test_a_step_without_targets_ends_by_reason(
    owner, engine, planned, reason, options, cancelled, expected
):
    job = await a_job(owner)
    await set_steps(owner, options=options)
    execution = await another_run(owner, engine, job, await a_host(engine))
    await begin(engine, execution.run)
    if planned:
        await execution.reach(1, 0)
    else:
        await engine.execute(Q.reach_step, EPOCH, execution.run, 1)
    if cancelled:
        await owner.execute("update jobs_internal.step_execution set cancel_requested_at = now()")

    assert await execution.value("end_step", EPOCH, execution.run, 1, reason, "why") == expected[0]

    step = await execution.step()
    assert (step["lifecycle"], step["end_reason"]) == expected[:2]
    if expected[2]:
        assert step["last_message"] == expected[2]
    assert await execution.value("end_run", EPOCH, execution.run) == expected[0]


async def test_a_run_lives_until_a_step_was_reached_or_it_is_cancelled(owner, engine):
    job = await a_job(owner)
    execution = await another_run(owner, engine, job, uuid4())
    await begin(engine, execution.run)
    assert await execution.value("end_run", EPOCH, execution.run) is None

    await owner.execute("select jobs.sp_stop_job($1)", execution.run)
    await owner.execute("update jobs_internal.job_execution set cancel_requested_at = now()")

    assert await execution.value("end_run", EPOCH, execution.run) == "Canceled"
    assert (await execution.row())["last_message"] == "Canceled before it started."


@pytest.mark.parametrize(("outcome", "expected"), [(SUCCEEDED, "Canceled"), (FAILED, "Failed")])
async def test_a_run_cancelled_between_two_steps_did_not_succeed(
    execution: ExecutionFixture, owner, outcome, expected
):
    keys = await execution.started(1, 2, 3)
    await execution.report(results=[key | outcome for key in keys])
    await execution.value("end_step", EPOCH, execution.run, 1, None, None)
    await owner.execute("update jobs_internal.job_execution set cancel_requested_at = now()")

    assert await execution.value("end_run", EPOCH, execution.run) == expected
