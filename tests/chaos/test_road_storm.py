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

from tests.chaos.road_invariants import EFFECT, PROBE, violations
from tests.support import postgres as server
from tests.support.crew import Crew, crew
from tests.support.launching import until

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


@pytest.fixture(scope="module")
def servers():
    with (
        server.running(migrated=False, durable=True) as control,
        server.running(migrated=False, durable=True) as fleet,
    ):
        yield control, fleet


@dataclass
class Storm:
    here: Crew
    control: server.Postgres
    targets: server.Postgres
    dice: random.Random
    runs: list[UUID] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    async def load(self) -> None:
        """Starts something and stops something, as long as the control database is there."""
        while True:
            try:
                await self._some()
            except AWAY:
                with contextlib.suppress(*AWAY):
                    await self.here.fleet.renew()
            await asyncio.sleep(self.dice.uniform(0.05, 0.4))

    async def _some(self) -> None:
        root = self.here.fleet.root
        live = "select job_execution_id from jobs_internal.job_execution r join jobs_internal.job j using (job_id) where r.end_time is null and not j.system"
        rows = await root.fetch(live)
        if len(rows) < AT_ONCE:
            self.runs.append(await self.here.fleet.start(self.dice.choice([*JOBS])))
        elif self.dice.random() < 0.1:
            with contextlib.suppress(asyncpg.PostgresError):  # it was just over
                await root.execute("select jobs.sp_stop_job($1)", self.dice.choice(rows)[0])

    async def fault(self) -> None:
        here, dice = self.here, self.dice
        kind = dice.choice(["core", "host", "control", "targets"])
        if kind in {"control", "targets"}:
            machine = (self.control if kind == "control" else self.targets).machine
            await asyncio.to_thread(machine.crash)
            await asyncio.sleep(dice.uniform(0, 1.5))
            await machine.revive()
        else:
            number = dice.choice([signal.SIGKILL, signal.SIGSTOP])
            kind = f"{kind} {number.name}"
            victims = here.cores if kind.startswith("core") else here.hosts
            if victims:
                dice.choice(victims).send(number)
        self.faults[kind] += 1


async def test_a_storm_leaves_nothing_wrong(settings, db, servers, tmp_path):
    async with crew(settings, db, *servers, tmp_path, databases=6) as here:
        for name in here.fleet.databases:
            await here.fleet.query(name, PROBE)
        for name, (script, options) in JOBS.items():
            await here.fleet.job(name, script, options=options, retry_attempts=50)
        await here.fleet.root.execute("update jobs_internal.job set overlap = 'allow'")
        storm = Storm(here, *servers, random.Random(SEED))

        async with here.kept():
            loading = asyncio.create_task(storm.load())
            for _ in range(FAULTS):
                await asyncio.sleep(storm.dice.uniform(0.2, 2.5))
                await storm.fault()
            loading.cancel()
            await asyncio.wait({loading})
            await here.fleet.renew()
            ends = Counter([await over(here, run) for run in storm.runs])

        found = await violations(here.fleet)
        print(f"\nstorm {SEED}: faults injected: {storm.faults.total()}, violations: {len(found)}")
        print(f"{dict(storm.faults)}, runs: {dict(ends)}")
        assert found == [], here.log()
        assert sum(ends.values()) > FAULTS
        unknown = await here.fleet.root.fetch(
            "select distinct end_reason from jobs_internal.target_execution where lifecycle = 'Failed'"
        )
        assert {row["end_reason"] for row in unknown} <= {"OutcomeUnknown"}


async def over(here: Crew, run: UUID) -> str:
    try:
        return await here.fleet.ended(run, 90)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{here.log()}") from None
