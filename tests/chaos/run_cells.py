"""What goes on while a fault happens on the road: places, jobs that pass all of them, and their runs."""

import socket
from typing import Any
from uuid import UUID

from muster.core.failpoints import DECLARED
from tests.chaos.run_invariants import EFFECT, PROBE
from tests.support.fleet import SERVER, Fleet
from tests.support.launching import until

POINTS = sorted(point for point in DECLARED if point.startswith(("core.", "host.")))
# The sequence counts what was really done: it is not rolled back.
RETRIED = f"""
do $$ begin
    if nextval('tries') < 2 then raise exception 'not yet' using errcode = '40001'; end if;
end $$;
{EFFECT}
"""
REPORT = "select current_database()::text as name"
VERIFY = (
    "select 1 from probe where job_execution_id = '$(job_execution_id)' and step_id = $(step_id)"
)
# Fails in the first database of the fleet, which is the first wave.
STAGED = f"""
do $$ begin
    if current_database() ~ '_0$' then raise exception 'not here' using errcode = '42P01'; end if;
end $$;
{EFFECT}
"""
NOT_READY = f"""
do $$ begin
    if to_regclass('ready') is null then raise exception 'not yet' using errcode = '42P01'; end if;
end $$;
{EFFECT}
"""
# Fails in the first database until the table `ready` is there, and waits for it in the last one.
PARTLY_READY = f"""
do $$ begin
    if to_regclass('ready') is null and current_database() ~ '_0$' then
        raise exception 'not here' using errcode = '42P01';
    elsif to_regclass('ready') is null and current_database() ~ '_2$' then
        raise exception 'not yet' using errcode = '40001';
    end if;
end $$;
{EFFECT}
"""
ONCE_A_SECOND = {
    "retry_attempts": 1000,
    "initial_retry_interval_seconds": 1,
    "maximum_retry_interval_seconds": 1,
}
# The server `later` as it is known: hosts read it again.
MOVE_SERVER = """
with moved as (
    update jobs_internal.server_directory set port = $1, revision = revision + 1 where name = 'later' returning revision
)
update jobs_internal.directory_revision set revision = (select revision from moved)
"""
TARGET_ID = """
select d.target_id
  from jobs_internal.target_execution x
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.job_execution_id = $1 and x.lifecycle = 'Failed'
"""
DONE = "select last_value - (not is_called)::int from tries"


def cancels(point: str) -> bool:
    return "cancel" in point


def halts(point: str) -> bool:
    """The run `staged` passes it: its first wave fails, an operator resumes it, and aborts it when asked to."""
    return point.endswith(("halt", "halted", "wave", "wave_opened", "abort", "aborted"))


def chains(point: str) -> bool:
    """The run `chained` passes it: one target fails in the first step, the others go on, each on its own."""
    return point.endswith(("chain_step", "skip", "skipped"))


def reruns(point: str) -> bool:
    """A rerun of `repeated`, whose first run failed everywhere, passes it."""
    return point == "core.targets_chosen"


def retries(point: str) -> bool:
    """The run `partly` passes it: an operator retries the target that failed while another one waits."""
    return point in {"core.before_retry", "core.retried"}


def joins(point: str) -> bool:
    """The run `late` passes it: its server can't be reached at first, and is listed while the step runs."""
    return point.endswith(("join", "joined"))


def repeats(point: str) -> bool:
    """The run `again` passes it: its first attempt fails everywhere, the second one takes all targets again."""
    return point.endswith(("attempt", "attempt_begun", "attempt_end", "attempt_ended"))


def expected_end(point: str) -> str:
    if cancels(point):
        return "Canceled"
    return "Failed" if halts(point) or chains(point) else "Succeeded"


async def prepare(fleet: Fleet) -> None:
    """`twice`: a guarded step, one that fails once everywhere and is verified, and one with an output; `stopped`: is to be
    cancelled."""
    for name in fleet.databases:
        await fleet.query(name, PROBE)
        await fleet.query(name, "create sequence tries")
    options = {"jitter": 0, "verify": {"sql": VERIFY}}
    plain: dict[str, Any] = {"target_group_name": "everything", "options": options}
    await fleet.job("twice", EFFECT, options={"guard": True})
    await fleet.call(
        "sp_add_jobstep", job_name="twice", step_name="retried", command=RETRIED, **plain
    )
    await fleet.job("again", RETRIED, retry_attempts=0)
    rules = {"enabled": True, "backoffSeconds": [0]}
    await fleet.call("sp_update_job", job_name="again", run_attempts=rules)
    await fleet.call(
        "sp_add_jobstep", job_name="twice", step_name="reported", command=f"{EFFECT}; {REPORT}",
        target_group_name="everything", options={"jitter": 0}, output_type="SqlDatabase",
        output_server_name="fleet", output_database_name=fleet.databases[0], output_table_name="report",
    )  # fmt: skip
    await fleet.job("stopped", f"{EFFECT}; select pg_sleep(60)")
    rollout = {"waves": [1, "100%"], "haltAfterFailures": 1}
    await fleet.job("staged", STAGED, retry_attempts=0, options={"rollout": rollout})
    more: dict[str, Any] = {"target_group_name": "everything", "options": {"advance": "perTarget"}}
    for name, script, steps in (("chained", STAGED, 3), ("repeated", NOT_READY, 2)):
        await fleet.job(name, script)
        for number in range(2, steps + 1):
            await fleet.call(
                "sp_add_jobstep", job_name=name, step_name=f"step{number}", command=EFFECT, **more
            )

    await fleet.job("partly", PARTLY_READY, **ONCE_A_SECOND)
    await fleet.root.execute(SERVER, "/later", "later", fleet.targets.port, 20, 10_000)
    await fleet.call("sp_add_target_group", target_group_name="late")
    await fleet.call(
        "sp_add_target_group_member", target_group_name="late", target_type="SqlDatabase", server_name="later",
        database_name=f"{fleet.databases[0][:-1]}*", refresh_credential_name="fleet",
    )  # fmt: skip
    await fleet.job("late", EFFECT, group="late", **ONCE_A_SECOND)


async def begin(fleet: Fleet, point: str) -> UUID:
    """The run that passes this place; one that is to be cancelled is on its way."""
    if halts(point):
        return await begin_staged(fleet, abort="abort" in point)
    if chains(point):
        return await fleet.start("chained")
    if retries(point):
        return await begin_retried(fleet)
    if joins(point):
        return await begin_late(fleet)
    if not cancels(point):
        for name in fleet.databases:
            await fleet.query(name, "alter sequence tries restart")
        if repeats(point):
            return await fleet.start("again")
        return await (begin_rerun(fleet) if reruns(point) else fleet.start("twice"))
    run = await fleet.start("stopped")

    async def running() -> bool:
        return (await fleet.lifecycles(run))["InProgress"] == len(fleet.databases)

    await until(running)
    await fleet.root.execute("select jobs.sp_stop_job($1)", run)
    return run


async def begin_staged(fleet: Fleet, *, abort: bool) -> UUID:
    run = await fleet.start("staged")

    async def halted() -> bool:
        return [step["wait_reason"] for step in await fleet.steps(run)] == ["Halted"]

    await until(halted)
    function = "sp_abort_execution" if abort else "sp_resume_execution"
    await fleet.root.execute(f"select jobs.{function}($1)", run)
    return run


async def begin_rerun(fleet: Fleet) -> UUID:
    """Of all targets, which were not ready when the origin ran."""
    for name in fleet.databases:
        await fleet.query(name, "drop table if exists ready")
    origin = await fleet.start("repeated")
    assert await fleet.ended(origin) == "Failed"
    for name in fleet.databases:
        await fleet.query(name, "create table ready ()")
    return await fleet.call(
        "sp_rerun_execution", job_execution_id=origin, outcomes=["failed", "skipped"]
    )


async def begin_retried(fleet: Fleet) -> UUID:
    for name in fleet.databases:
        await fleet.query(name, "drop table if exists ready")
    run = await fleet.start("partly")
    await until(lambda: fleet.in_state(run, "Failed", 1))
    target = await fleet.root.fetchval(TARGET_ID, run)
    for name in fleet.databases[:-1]:
        await fleet.query(name, "create table ready ()")
    await fleet.call("sp_retry_target", job_execution_id=run, step_name="step1", target_id=target)
    await until(lambda: fleet.in_state(run, "Succeeded", len(fleet.databases) - 1))
    await fleet.query(fleet.databases[-1], "create table ready ()")
    return run


async def begin_late(fleet: Fleet) -> UUID:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    await fleet.root.execute(MOVE_SERVER, port)
    run = await fleet.start("late")
    await until(lambda: fleet.in_state(run, "WaitingForRetry", 1))
    await fleet.root.execute(MOVE_SERVER, fleet.targets.port)
    return run


async def overdone(fleet: Fleet, run: UUID) -> list[str]:
    """Databases in which a script was begun more often than is recorded, be it rolled back or not."""
    attempts = {
        row["database_name"]: row["attempts"]
        for row in await fleet.root.fetch(
            "select d.database_name, x.attempts from jobs_internal.target_execution x"
            "  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)"
            "  join jobs_internal.job_execution r using (run_day, job_execution_id)"
            "  join jobs_internal.job j on j.job_id = r.job_id and j.name = 'twice'"
            " where x.job_execution_id = $1 and x.step_id = 2",
            run,
        )
    }
    done = dict(zip(fleet.databases, await fleet.everywhere(DONE), strict=True))
    return [f"{name}: {done[name]} of {n}" for name, n in attempts.items() if done[name] > n]
