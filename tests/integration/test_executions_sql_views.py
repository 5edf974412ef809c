"""The views of executions: Azure's columns first, deleted jobs apart."""

import pytest

from tests.support.executions import a_job, a_run, end, some_targets

DOCUMENTED = """
job_execution_id job_name job_id job_version step_id is_active lifecycle create_time start_time end_time
current_attempts current_attempt_start_time next_attempt_start_time last_message target_type target_id
target_group_name target_server_name target_database_name
""".split()


async def test_documented_columns_come_first(owner):
    for view in ("job_executions", "deleted_job_executions"):
        shown = await owner.prepare(f"select * from jobs.{view}")
        columns = [column.name for column in shown.get_attributes()]

        assert columns[: len(DOCUMENTED)] == DOCUMENTED


async def test_the_three_levels_of_a_run(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 2)

    rows = await owner.fetch(
        "select * from jobs.job_executions order by step_id nulls first, target_id nulls first,"
        " target_database_name"
    )

    assert {row["job_execution_id"] for row in rows} == {run}
    assert [(row["step_id"], row["step_name"]) for row in rows] == [
        (None, None),
        (1, "step1"),
        (1, "step1"),
        (1, "step1"),
    ]
    for parent in rows[:2]:
        assert {parent[name] for name in DOCUMENTED if name.startswith("target_")} == {None}
    assert {
        (
            row["target_type"],
            row["target_group_name"],
            row["target_server_name"],
            row["target_database_name"],
        )
        for row in rows[2:]
    } == {("SqlDatabase", "everything", "s1", "db1"), ("SqlDatabase", "everything", "s2", "db2")}
    assert all(row["is_active"] for row in rows)
    await end(owner, run)
    assert not await owner.fetch("select from jobs.job_executions where is_active")


async def test_a_deleted_job_is_only_where_deleted_ones_are(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 1)
    await owner.execute("select jobs.sp_stop_job($1)", run)
    await end(owner, run, "Canceled")
    assert len(await owner.fetch("select from jobs.job_cancellations")) == 1

    await owner.execute("update jobs_internal.job set deleted_at = now()")

    assert await owner.fetch("select from jobs.job_executions") == []
    assert await owner.fetch("select from jobs.job_cancellations") == []
    rows = await owner.fetch("select lifecycle, deleted_at from jobs.deleted_job_executions")
    assert [row["lifecycle"] for row in rows] == ["Canceled"] * 3
    assert all(row["deleted_at"] for row in rows)


async def test_a_cancellation_of_one_target_names_it(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 2)
    await owner.execute(
        "insert into jobs_internal.cancellation (job_execution_id, step_id, ordinal, requested_by, door)"
        " values ($1, 1, 2, 'x', 'rest')",
        run,
    )

    row = await owner.fetchrow(
        "select c.step_id, e.target_database_name from jobs.job_cancellations c"
        " join jobs.job_executions e using (job_execution_id, step_id, target_id)"
    )

    assert tuple(row) == (1, "db2")


@pytest.mark.newest
async def test_one_run_is_read_without_a_look_at_other_days(owner):
    job = await a_job(owner)
    run = await a_run(owner, job)
    await some_targets(owner, job, run, 5)
    for day in range(1, 4):
        await owner.execute(
            "select jobs_internal.ensure_partitions((now() at time zone 'UTC')::date + $1::integer)",
            day,
        )

    plan = await owner.fetch(
        f"explain (analyze, costs off, timing off, summary off)"
        f" select * from jobs.job_executions where job_execution_id = '{run}'"
    )

    scans = [row[0] for row in plan if "_execution_20" in row[0] and "Scan" in row[0]]
    assert scans
    assert sum("never executed" not in scan for scan in scans) <= 3
