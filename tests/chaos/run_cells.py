"""What goes on while a fault happens on the road: places, jobs that pass all of them, and their runs."""

from typing import Any
from uuid import UUID

from muster.core.failpoints import DECLARED
from tests.chaos.run_invariants import EFFECT, PROBE
from tests.support.fleet import Fleet
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


async def begin(fleet: Fleet, point: str) -> UUID:
    """The run that passes this place; one that is to be cancelled is on its way."""
    if halts(point):
        return await begin_staged(fleet, abort="abort" in point)
    if chains(point):
        return await fleet.start("chained")
    if not cancels(point):
        for name in fleet.databases:
            await fleet.query(name, "alter sequence tries restart")
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
