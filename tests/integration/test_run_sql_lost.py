"""What is taken from hosts: cancelled targets in every phase, tasks of hosts that are lost."""

import asyncio
import json
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.executions import EPOCH, a_session
from tests.support.execution_fixture import (
    FAILED,
    ORDERS,
    SUCCEEDED,
    Key,
    a_host,
    an_execution,
    set_steps,
    waits,
)

pytestmark = [pytest.mark.newest, pytest.mark.deep]


@pytest.fixture
async def second_session(account):
    """Another session of the engine."""
    session = await account.connect("engine")
    yield session
    await session.close()


async def in_phase(execution, phase: str, ordinal: int = 1) -> dict | None:
    """A target that has come so far, and its newest task."""
    if phase == "created":
        return None
    (key,) = await execution.reserve(ordinal)
    if phase == "reserved":
        return key
    await execution.report(starts=[key])
    if phase == "committing":
        await execution.report(commits=[key | {"xact_id": "1"}])
    elif phase == "waiting":
        await execution.report(results=[key | FAILED | {"retry": True}])
    elif phase == "over":
        await execution.report(results=[key | SUCCEEDED])
    return key


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize(
    ("phase", "lifecycle"),
    [
        ("created", "Canceled"),
        ("reserved", "Canceled"),
        ("running", "InProgress"),
        ("committing", "InProgress"),
        ("waiting", "Canceled"),
        ("over", "Succeeded"),
    ],
)
async def test_a_target_is_cancelled_in_each_phase(execution, phase, lifecycle, everything):
    key = await in_phase(execution, phase)
    chosen = None if everything else [1]

    rows = await execution.ask("cancel_targets", EPOCH, execution.run, 1, chosen)
    again = await execution.ask("cancel_targets", EPOCH, execution.run, 1, chosen)

    target = await execution.target(1)
    runs = lifecycle == "InProgress"
    mine = [tuple(row) for row in rows if row["ordinal"] == 1]
    if phase == "over":
        assert mine == []
    elif runs:
        assert key is not None
        assert mine == [(1, execution.host, UUID(key["invocation_id"]), False)]
        assert [tuple(row) for row in again] == mine
    else:
        assert mine == [(1, None, None, True)]
        assert again == []
    assert target["lifecycle"] == lifecycle
    assert (target["cancel_requested_at"] is not None) is (phase != "over")
    if lifecycle == "Canceled":
        assert (target["end_reason"], target["wait_reason"]) == ("Canceled", None)
        waited = "Canceled while it waited for its next attempt. Last error: division by zero"
        said = waited if phase == "waiting" else "Canceled before it started."
        assert target["last_message"] == said
    if phase == "reserved":
        assert await execution.task(1) is None
        assert await execution.report(starts=[key]) == [key["invocation_id"]]
        assert await execution.ask("take", execution.host, 0) == []
    others = {(await execution.target(ordinal))["lifecycle"] for ordinal in (2, 3)}
    assert others == {"Canceled" if everything else "Created"}


async def test_a_commit_that_had_won_is_a_success(execution):
    (key,) = await execution.started(1)
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, [1])

    await execution.report(results=[key | SUCCEEDED])

    assert (await execution.target(1))["lifecycle"] == "Succeeded"


async def test_a_start_that_comes_first_is_cancelled_as_an_attempt(execution, second_session):
    (key,) = await execution.reserve(1)
    transaction = second_session.transaction()
    await transaction.start()
    await execution.report(starts=[key], session=second_session)
    cancel = asyncio.create_task(execution.ask("cancel_targets", EPOCH, execution.run, 1, [1]))
    await waits(execution.owner, execution.engine)

    await transaction.commit()

    (row,) = await cancel
    assert tuple(row) == (1, execution.host, UUID(key["invocation_id"]), False)
    assert (await execution.target(1))["lifecycle"] == "InProgress"


async def test_a_cancellation_that_comes_first_refuses_the_start(execution, second_session):
    (key,) = await execution.reserve(1)
    transaction = execution.engine.transaction()
    await transaction.start()
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, [1])
    start = asyncio.create_task(execution.report(starts=[key], session=second_session))
    await waits(execution.owner, second_session)

    await transaction.commit()

    assert await start == [key["invocation_id"]]
    assert (await execution.target(1))["lifecycle"] == "Canceled"


async def test_a_failure_that_comes_first_is_not_tried_again_after_a_cancellation(
    execution, second_session
):
    (key,) = await execution.started(1)
    transaction = second_session.transaction()
    await transaction.start()
    await execution.report(results=[key | FAILED | {"retry": True}], session=second_session)
    cancel = asyncio.create_task(execution.ask("cancel_targets", EPOCH, execution.run, 1, None))
    await waits(execution.owner, execution.engine)

    await transaction.commit()

    assert [(row["ordinal"], row["ended"]) for row in await cancel] == [
        (2, True),
        (3, True),
        (1, True),
    ]
    assert (await execution.target(1))["lifecycle"] == "Canceled"


async def test_a_cancellation_that_comes_first_turns_the_retry_into_an_end(
    execution, second_session
):
    (key,) = await execution.started(1)
    transaction = execution.engine.transaction()
    await transaction.start()
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, [1])
    result = [key | FAILED | {"retry": True}]
    failure = asyncio.create_task(execution.report(results=result, session=second_session))
    await waits(execution.owner, second_session)

    await transaction.commit()

    assert await failure == []
    assert (await execution.target(1))["lifecycle"] == "Canceled"


async def test_a_reservation_waits_for_a_cancellation_and_finds_its_target_over(
    execution, second_session
):
    transaction = second_session.transaction()
    await transaction.start()
    await second_session.fetch(
        "select jobs_internal.cancel_targets($1, $2, 1, '{1}')", EPOCH, execution.run
    )
    reservation = asyncio.create_task(execution.reserve(1, 2))
    await waits(execution.owner, execution.engine)

    await transaction.commit()
    await reservation

    assert await execution.task(1) is None
    assert [row["ordinal"] for row in await execution.ask("take", execution.host, 0)] == [2]


@pytest.mark.parametrize("guard", [None, False, True, "job"])
async def test_an_attempt_with_any_guard_may_be_repeated(execution, owner, guard):
    await set_steps(owner, options={} if guard is None else {"guard": guard})
    (running,) = await execution.reserve(1)
    await execution.report(starts=[running | {"backend_pid": 4711}])

    (lost,) = await execution.ask("disown", EPOCH, execution.host)

    assert lost["guard"] is bool(guard)


async def test_nothing_of_a_lost_host_counts(execution, owner):
    await set_steps(owner, options={"idempotent": True, "transaction": "none"})
    other = await a_host(execution.engine)
    (running,) = await execution.reserve(1)
    await execution.report(
        starts=[running | {"backend_pid": 4711}], commits=[running | {"xact_id": "9"}]
    )
    (reserved,) = await execution.reserve(2)
    await execution.reserve(3, host=other)

    one, two = await execution.ask("disown", EPOCH, execution.host)

    task = await execution.task(1)
    new = task["invocation_id"]
    assert str(new) != running["invocation_id"]
    assert dict(one) == {
        "run_day": execution.day, "job_execution_id": execution.run, "step_id": 1, "ordinal": 1, "attempt": 1,
        "invocation_id": new, "old_invocation": UUID(running["invocation_id"]), "task_lifecycle": "InProgress",
        "backend_pid": 4711, "xact_id": "9", "server_id": "/servers/1", "database_name": "db1",
        "credential_id": None, "credential_version": None, "start_time": task["start_time"],
        "idempotent": True, "guard": False, "transaction": "none", "verify": False, "output": False,
    }  # fmt: skip
    assert (two["ordinal"], two["task_lifecycle"]) == (2, "Created")
    assert [(await execution.target(n))["wait_reason"] for n in (1, 2, 3)] == [
        "HostLost",
        None,
        None,
    ]
    assert two["invocation_id"] == two["old_invocation"] == UUID(reserved["invocation_id"])
    assert await execution.task(2) is None
    said = [running | SUCCEEDED]
    assert await execution.report(results=said) == [running["invocation_id"]]
    assert await execution.report(commits=[running | {"xact_id": "8"}]) == [
        running["invocation_id"]
    ]
    assert await execution.report(starts=[reserved]) == [reserved["invocation_id"]]
    assert await execution.ask("take", execution.host, 0) == []
    assert (await execution.task(1))["lifecycle"] == "InProgress"
    assert (await execution.target(2))["lifecycle"] == "Created"
    assert (await execution.task(3))["host_id"] == other
    assert await execution.told() == []


async def test_a_host_lost_twice_is_known_by_its_first_invocation(execution):
    (running,) = await execution.started(1)

    (first,) = await execution.ask("disown", EPOCH, execution.host)
    (second_session,) = await execution.ask("disown", EPOCH, execution.host)

    assert (
        first["old_invocation"]
        == second_session["old_invocation"]
        == UUID(running["invocation_id"])
    )
    assert (
        len(
            {
                first["invocation_id"],
                second_session["invocation_id"],
                UUID(running["invocation_id"]),
            }
        )
        == 3
    )


async def test_the_core_settles_what_a_lost_host_left(execution):
    keys = await execution.started(1, 2)
    rows = await execution.ask("disown", EPOCH, execution.host)
    lost = [
        key | {"invocation_id": str(row["invocation_id"])}
        for key, row in zip(keys, rows, strict=True)
    ]
    results = [
        lost[0] | FAILED | {"again": True, "reason": "HostLost"},
        lost[1] | SUCCEEDED,
        keys[0] | SUCCEEDED,
    ]

    told = json.loads(await execution.value("settle", EPOCH, json.dumps(results)))
    again = json.loads(await execution.value("settle", EPOCH, json.dumps(results)))

    assert sorted((each["lifecycle"], each["invocation_id"], each["kind"]) for each in told) == [
        ("Succeeded", lost[1]["invocation_id"], "result"), ("WaitingForRetry", lost[0]["invocation_id"], "result"),
    ]  # fmt: skip
    assert again == []
    assert await execution.told() == []
    assert (await execution.target(1))["free_attempts"] == 1
    assert [(await execution.target(n))["wait_reason"] for n in (1, 2)] == ["Retry", None]


async def test_a_result_that_comes_first_is_kept_from_disowning(execution, second_session):
    (key,) = await execution.started(1)
    transaction = second_session.transaction()
    await transaction.start()
    await execution.report(results=[key | SUCCEEDED], session=second_session)
    disown = asyncio.create_task(execution.ask("disown", EPOCH, execution.host))
    await waits(execution.owner, execution.engine)

    await transaction.commit()

    assert await disown == []
    assert (await execution.target(1))["lifecycle"] == "Succeeded"
    assert len(await execution.told()) == 1


async def test_disowning_that_comes_first_refuses_the_result(execution, second_session):
    (key,) = await execution.started(1)
    transaction = execution.engine.transaction()
    await transaction.start()
    await execution.ask("disown", EPOCH, execution.host)
    result = asyncio.create_task(
        execution.report(results=[key | SUCCEEDED], session=second_session)
    )
    await waits(execution.owner, second_session)

    await transaction.commit()

    assert await result == [key["invocation_id"]]
    assert (await execution.target(1))["lifecycle"] == "InProgress"


async def test_hosts_and_the_core_at_once_leave_one_end_for_each_target(account, owner, engine):
    """Starts, results and cancellations in many orders: nobody waits in a circle, nothing is lost."""
    many = 40
    execution = await an_execution(owner, engine, targets=many)
    hosts = [execution.host, await a_host(execution.engine)]
    sessions = [await account.connect("engine") for _ in hosts]
    halves = [list(range(1 + n, many + 1, 2)) for n in (0, 1)]
    reserved = [
        await execution.reserve(*half, host=host) for half, host in zip(halves, hosts, strict=True)
    ]

    async def work(host: UUID, session: asyncpg.Connection, keys: list[Key]) -> None:
        for now, before in zip([*keys, None], [None, *keys], strict=True):
            await execution.report(
                starts=[now] if now else [],
                results=[before | SUCCEEDED] if before else [],
                host=host,
                session=session,
            )

    async def cancel() -> None:
        for last in range(many, 0, -4):
            await execution.ask(
                "cancel_targets", EPOCH, execution.run, 1, list(range(last, many + 1))
            )

    await asyncio.gather(*map(work, hosts, sessions, reserved), cancel())
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, None)

    rows = await owner.fetch(
        "select x.lifecycle as ended, t.lifecycle as task from jobs_internal.target_execution x"
        " left join jobs_internal.task t using (run_day, job_execution_id, step_id, ordinal)"
    )
    assert {tuple(row) for row in rows} <= {("Succeeded", "Succeeded"), ("Canceled", None)}
    assert len(rows) == many
    succeeded = [row for row in rows if row["ended"] == "Succeeded"]
    assert len(await execution.told()) == len(succeeded)
    for session in sessions:
        await session.close()


async def test_wishes_are_open_until_they_are_closed(execution, owner):
    target = await owner.fetchval(
        "select target_id from jobs_internal.snapshot_target where ordinal = 2"
    )
    await owner.execute(
        "select jobs.sp_stop_target($1, 'STEP1', $2, 'too slow')", execution.run, target
    )
    await owner.execute("select jobs.sp_stop_step($1, 'step1')", execution.run)
    await owner.execute("select jobs.sp_stop_job($1)", execution.run)

    rows = await execution.engine.fetch(ORDERS, EPOCH)
    for row, needed in zip(rows, ("protocol", "nothing", "pg_cancel_backend"), strict=True):
        for said in (needed, "pg_terminate_backend"):
            await execution.ask("close_cancellation", EPOCH, row["cancellation_id"], said)

    assert [tuple(row)[1:4] for row in rows] == [
        (execution.run, 1, 2), (execution.run, 1, None), (execution.run, None, None),
    ]  # fmt: skip
    assert rows[0]["reason"] == "too slow"
    assert await execution.engine.fetch(ORDERS, EPOCH) == []
    closed = await owner.fetch(
        "select needed, requested_by, door, completed_at from jobs.job_cancellations order by requested_at"
    )
    assert [row["needed"] for row in closed] == ["protocol", "nothing", "pg_cancel_backend"]
    assert {(row["requested_by"], row["door"]) for row in closed} == {("postgres", "psql")}
    assert (await execution.step())["cancel_requested_at"] is not None
    requested = [(await execution.target(n))["cancel_requested_at"] for n in (1, 2, 3)]
    assert [each is not None for each in requested] == [False, True, False]
    audit = await owner.fetch(
        "select detail from jobs_internal.audit where action in ('sp_stop_step', 'sp_stop_target')"
        " order by audit_id"
    )
    assert json.loads(audit[0][0]) == {
        "job_execution_id": str(execution.run), "step_name": "step1", "target_id": str(target),
    }  # fmt: skip
    assert json.loads(audit[1][0]) == {"job_execution_id": str(execution.run), "step_name": "step1"}


async def test_the_engine_hears_of_wishes(execution, owner):
    heard: list[str] = []
    await execution.engine.add_listener("muster_execution", lambda *said: heard.append(said[3]))

    await owner.execute("select jobs.sp_stop_step($1, 'step1')", execution.run)
    while not heard:
        await execution.engine.execute("select 1")

    assert heard == [""]


async def test_only_what_is_there_and_lives_can_be_stopped(execution, owner):
    target = await owner.fetchval(
        "select target_id from jobs_internal.snapshot_target where ordinal = 1"
    )
    (key,) = await execution.started(1)
    await execution.report(results=[key | SUCCEEDED])
    stop_step, stop_target = (
        "select jobs.sp_stop_step($1, $2)",
        "select jobs.sp_stop_target($1, $2, $3)",
    )

    async def refusal(statement: str, *args: object) -> tuple[str, str]:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await owner.execute(statement, *args)
        return caught.value.sqlstate, caught.value.column_name

    assert await refusal(stop_step, uuid4(), "step1") == ("MU010", "job_execution_id")
    assert await refusal(stop_step, execution.run, "step2") == ("MU010", "step_name")
    assert await refusal(stop_target, execution.run, "step1", uuid4()) == ("MU010", "target_id")
    assert await refusal(stop_target, execution.run, "step1", target) == ("MU013", "target_id")
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, None)
    await execution.value("end_step", EPOCH, execution.run, 1, None, None)
    assert await refusal(stop_step, execution.run, "step1") == ("MU013", "step_name")
    assert await refusal(stop_target, execution.run, "step1", target) == ("MU013", "step_name")
    assert await owner.fetchval("select count(*) from jobs_internal.cancellation") == 0
