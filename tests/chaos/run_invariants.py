"""Asks a control database, and its targets, whether anything that must never be has come to be.

A script that tells on itself inserts a row into `probe` in its own transaction: which run, step and attempt
did it. The targets are the outside oracle: what they hold must be what the control database tells.

found = await violations(here)          of a Fleet: the control database and every probe
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from muster.core.sql import Queries
from tests.support.fleet import Fleet

INVARIANTS = Queries("tests.chaos", "run_invariants.sql")

PROBE = """
create table probe (job_execution_id uuid not null, step_id int not null, attempt int not null,
                    pid int not null default pg_backend_pid(), at timestamptz not null default clock_timestamp())
"""
EFFECT = "insert into probe values ('$(job_execution_id)', $(step_id), $(attempt))"
RECORDED = """
select x.job_execution_id, x.step_id, d.database_name, x.lifecycle, x.end_reason, x.attempts,
       coalesce((s.options ->> 'guard')::boolean, false) as guard, s.options ? 'verify' as verified,
       array(select t.attempt from jobs_internal.task t
              where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                    = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                and t.start_time is not null) as started,
       array(select t.attempt from jobs_internal.task t
              where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                    = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                and t.end_time is not null and t.lifecycle <> 'Succeeded'
                and coalesce(t.end_reason, '')
                    not in ('OutcomeUnknown', 'VerifyFailed', 'VerifyNotAnswered')) as undone
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (job_execution_id)
  join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
  join jobs_internal.script b on b.script_hash = s.script_hash
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where b.body like '%insert into probe%'
"""

Key = tuple[UUID, int, str]  # run, step, database


@dataclass(frozen=True)
class Recorded:
    """What the control database tells of a target."""

    lifecycle: str
    end_reason: str | None
    attempts: int
    guard: bool
    verified: bool
    started: list[int]
    undone: list[int]  # attempts that are known to have left nothing


@dataclass
class Oracle:
    """What was recorded against what is there."""

    recorded: dict[Key, Recorded]
    effects: dict[Key, list[int]] = field(default_factory=dict)  # the attempts that left something

    def violations(self) -> list[str]:
        found = []
        for key in self.recorded.keys() | self.effects.keys():
            here, told = self.effects.get(key, []), self.recorded.get(key)
            wrong = ["an effect of nothing that is known"] if told is None else judge(told, here)
            found += [f"I18_{each}: {'/'.join(map(str, key))} {here} {told}" for each in wrong]
        return found


def judge(told: Recorded, here: list[int]) -> Iterable[str]:
    if set(here) - set(told.started):
        yield "an effect of an attempt that never began"
    if len(here) > told.attempts or max(Counter(here).values(), default=0) > 1:
        yield "more effects than attempts"
    if told.guard and len(here) > 1:
        yield "a guard that let two through"
    if told.verified and len(here) > 1:
        yield "a script that committed was repeated to be verified"
    if set(here) & set(told.undone):
        yield "an effect of an attempt that is told to have left nothing"
    if told.lifecycle == "Succeeded":
        if not here:
            yield "a success without its effect"
        elif (
            told.attempts not in here and told.end_reason != "AlreadyApplied" and not told.verified
        ):
            yield "a success without the effect of its last attempt"


async def oracle(here: Fleet) -> Oracle:
    rows = await here.root.fetch(RECORDED)
    asked = Oracle({_key(row, row["database_name"]): _recorded(row) for row in rows})
    for database in here.databases:
        for row in await here.query(database, "select * from probe"):
            asked.effects.setdefault(_key(row, database), []).append(row["attempt"])
    return asked


async def told(root: asyncpg.Connection) -> list[str]:
    """What the control database itself gives away."""
    return [
        f"{name}: {row['what']}"
        for name, query in INVARIANTS.items()
        for row in await root.fetch(query)
    ]


async def violations(here: Fleet) -> list[str]:
    return await told(here.root) + (await oracle(here)).violations()


def _key(row: Any, database: str) -> Key:
    return row["job_execution_id"], row["step_id"], database


def _recorded(row: Any) -> Recorded:
    return Recorded(**{name: row[name] for name in Recorded.__annotations__})
