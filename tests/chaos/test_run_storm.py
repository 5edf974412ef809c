"""Many runs at once and one fault after the other, drawn by a seed: at the end everything is over and true."""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import pytest

from tests.chaos.run_cells import REPORT
from tests.chaos.run_invariants import EFFECT, PROBE, violations
from tests.support import postgres as server
from tests.support.engine_processes import EngineProcesses, start_processes

pytestmark = [pytest.mark.newest, pytest.mark.slow]

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
FAULTS = 24
AT_ONCE = 6  # runs
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
JOBS = {
    "guarded": (EFFECT, {"guard": True}),
    "plain": (EFFECT, {}),
    "slow": (f"{EFFECT}; select pg_sleep(random())", {}),
    "late": (f"select pg_sleep(random()); {EFFECT}", {"guard": True}),
    "retried": (
        "do $$ begin if $(attempt) < 2 then raise exception 'not yet' using errcode = '40001'; end if; end $$;"
        f" {EFFECT}",
        {"jitter": 0},
    ),
}
REPEATED = "repeated"  # in attempts of the run
RULES = {
    "enabled": True, "backoffSeconds": [0, 1], "maxSuccessiveWithoutProgress": 100,
    "maxWithoutProgress": 100, "maxWithProgress": 100,
}  # fmt: skip
REPORTED = "reported"  # with an output in the first database
FOLLOWED = "followed"  # one at a time in each database, and with their host before their turn
SCHEMAS = 8  # in each database
MARK = "insert into mark values ('$(job_execution_id)')"
MARKED = """
select d.database_name, d.schema_name, x.lifecycle, x.attempts
  from jobs_internal.target_execution x
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.job_execution_id = $1 and d.schema_name is not null
"""
AHEAD = """
select count(*) from jobs_internal.task t join jobs_internal.task n using (run_day, job_execution_id, step_id)
  join jobs_internal.snapshot_target d on d.ordinal = t.ordinal
  join jobs_internal.snapshot_target e on (e.snapshot_id, e.ordinal) = (d.snapshot_id, n.ordinal)
  join jobs_internal.step_execution s on (s.job_execution_id, s.snapshot_id) = (t.job_execution_id, d.snapshot_id)
 where d.schema_name is not null and d.database_name = e.database_name and t.ordinal <> n.ordinal
   and n.create_time < t.end_time and n.start_time >= t.start_time and t.start_time < n.create_time
"""


@pytest.fixture(scope="module")
def servers():
    with (
        server.running(migrated=False, durable=True) as control,
        server.running(migrated=False, durable=True) as fleet,
    ):
        yield control, fleet


@dataclass
class Storm:
    processes: EngineProcesses
    control: server.Postgres
    targets: server.Postgres
    dice: random.Random
    runs: list[UUID] = field(default_factory=list)
    followed: list[UUID] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    async def load(self) -> None:
        """Starts something and stops something, as long as the control database is there."""
        while True:
            try:
                await self._some()
            except AWAY:
                with contextlib.suppress(*AWAY):
                    await self.processes.fleet.renew()
            await asyncio.sleep(self.dice.uniform(0.05, 0.4))

    async def _some(self) -> None:
        root = self.processes.fleet.root
        live = "select job_execution_id from jobs_internal.job_execution r join jobs_internal.job j using (job_id) where r.end_time is null and not j.system"
        rows = await root.fetch(live)
        if len(rows) < AT_ONCE:
            job = self.dice.choice([*JOBS, REPEATED, REPORTED, FOLLOWED])
            run = await self.processes.fleet.start(job)
            self.runs.append(run)
            if job == FOLLOWED:
                self.followed.append(run)
        elif self.dice.random() < 0.1:
            with contextlib.suppress(asyncpg.PostgresError):  # it was just over
                await root.execute("select jobs.sp_stop_job($1)", self.dice.choice(rows)[0])

    async def fault(self) -> None:
        processes, dice = self.processes, self.dice
        kind = dice.choice(["core", "host", "control", "targets"])
        if kind in {"control", "targets"}:
            machine = (self.control if kind == "control" else self.targets).machine
            await asyncio.to_thread(machine.crash)
            await asyncio.sleep(dice.uniform(0, 1.5))
            await machine.revive()
        else:
            number = dice.choice([signal.SIGKILL, signal.SIGSTOP])
            kind = f"{kind} {number.name}"
            victims = processes.cores if kind.startswith("core") else processes.hosts
            if victims:
                dice.choice(victims).send(number)
        self.faults[kind] += 1


async def test_a_storm_leaves_nothing_wrong(settings, db, servers, tmp_path):
    async with start_processes(settings, db, *servers, tmp_path, databases=6) as processes:
        for name in processes.fleet.databases:
            await processes.fleet.query(name, PROBE)
        for name, (script, options) in JOBS.items():
            await processes.fleet.job(name, script, options=options, retry_attempts=50)
        script, _ = JOBS["retried"]
        await processes.fleet.job(REPEATED, script, options={"guard": True}, retry_attempts=0)
        await processes.fleet.call("sp_update_job", job_name=REPEATED, run_attempts=RULES)
        await processes.fleet.job(
            REPORTED, f"{EFFECT}; {REPORT}", options={"jitter": 0}, retry_attempts=50, output_type="SqlDatabase",
            output_server_name="fleet", output_database_name=processes.fleet.databases[0], output_table_name="report",
        )  # fmt: skip
        await prepare_schemas(processes)
        await processes.fleet.root.execute("update jobs_internal.job set overlap = 'allow'")
        storm = Storm(processes, *servers, random.Random(SEED))

        async with processes.kept():
            loading = asyncio.create_task(storm.load())
            for _ in range(FAULTS):
                await asyncio.sleep(storm.dice.uniform(0.2, 2.5))
                await storm.fault()
            loading.cancel()
            await asyncio.wait({loading})
            await processes.fleet.renew()
            ends = Counter([await over(processes, run) for run in storm.runs])

        found = [*await violations(processes.fleet), *await overdone(processes, storm.followed)]
        print(f"\nstorm {SEED}: faults injected: {storm.faults.total()}, violations: {len(found)}")
        print(f"{dict(storm.faults)}, runs: {dict(ends)}")
        assert found == [], processes.log()
        assert sum(ends.values()) > FAULTS
        assert await processes.fleet.root.fetchval(AHEAD), "somebody was there before its turn"
        unknown = await processes.fleet.root.fetch(
            "select distinct end_reason from jobs_internal.target_execution"
            " where lifecycle = 'Failed' and not repeatable"  # else its run was cancelled between two attempts
        )
        # Schemas are listed, and their server may be away when that is wanted.
        assert {row["end_reason"] for row in unknown} <= {"OutcomeUnknown", "ServerUnreachable"}


async def prepare_schemas(processes: EngineProcesses) -> None:
    fleet = processes.fleet
    await fleet.call("sp_add_target_group", target_group_name="schemas")
    for name in fleet.databases:
        for number in range(SCHEMAS):
            await fleet.query(name, f"create schema s{number}")
            await fleet.query(name, f"create table s{number}.mark (run uuid)")
        await fleet.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=name, schema_pattern="s_",
        )  # fmt: skip
    options = {"guard": True, "slotsPerDatabase": 1}
    await fleet.job(FOLLOWED, MARK, group="schemas", options=options, retry_attempts=50)


async def overdone(processes: EngineProcesses, runs: list[UUID]) -> list[str]:
    """Schemas that hold other than one mark of a run that succeeded there, or more than one of any."""
    found = []
    for run in runs:
        for row in await processes.fleet.root.fetch(MARKED, run):
            where = f"{row['schema_name']}.mark"
            count = f"select count(*) from {where} where run = $1"
            marks = (await processes.fleet.query(row["database_name"], count, run))[0][0]
            if marks > 1 or (row["lifecycle"] == "Succeeded" and marks != 1):
                found.append(f"{row['database_name']} {where}: {marks}, {row['lifecycle']}")
    return found


async def over(processes: EngineProcesses, run: UUID) -> str:
    try:
        return await processes.fleet.ended(run, 90)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{processes.log()}") from None
