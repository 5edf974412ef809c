"""Asks a control database, and its targets, whether anything that must never be has come to be.

A script that tells on itself inserts a row into `probe` in its own transaction: which run, step and attempt
did it. The targets are the outside oracle: what they hold must be what the control database tells.

found = await violations(fleet)          of a Fleet: the control database and every probe
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
       coalesce((s.options ->> 'guard')::boolean, false) as guard,
       s.options ? 'verify' or s.output_type is not null as verified,
       array(select t.attempt from jobs_internal.task t
              where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                    = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                and t.start_time is not null) as started,
       array(select t.attempt from jobs_internal.task t
              where (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
                    = (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                and t.end_time is not null and t.lifecycle <> 'Succeeded'
                and coalesce(t.end_reason, '')
                    not in ('OutcomeUnknown', 'VerifyFailed', 'VerifyNotAnswered', 'OutputFailed')) as undone
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (job_execution_id)
  join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
  join jobs_internal.script b on b.script_hash = s.script_hash
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where b.body like '%insert into probe%'
"""

WITH_OUTPUT = """
select x.target_execution_id as id, x.lifecycle, s.output_database_name as database, s.output_table_name as table
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (job_execution_id)
  join jobs_internal.job_step s on (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, x.step_id)
 where s.output_type is not null
   and coalesce(x.end_reason, '') not in ('AlreadyApplied', 'AlreadyHolds')
"""

Key = tuple[UUID, int, str]  # run, step, database


@dataclass(frozen=True)
class Recorded:
    """What the control database tells of a target."""

    lifecycle: str
    end_reason: str | None
    attempts: int
    guard: bool
    verified: bool  # or with an output: an attempt may do what follows the script, and not send it
    started: list[int]
    undone: list[int]  # attempts that are known to have left nothing


@dataclass
class Oracle:
    """What was recorded against what is there."""

    recorded: dict[Key, Recorded]
    effects: dict[Key, list[int]] = field(default_factory=dict)  # the attempts that left something

    def violations(self) -> list[str]:
        messages = []
        for key in self.recorded.keys() | self.effects.keys():
            effects, record = self.effects.get(key, []), self.recorded.get(key)
            wrong = (
                ["an effect of nothing that is known"] if record is None else judge(record, effects)
            )
            messages += [
                f"I18_{each}: {'/'.join(map(str, key))} {effects} {record}" for each in wrong
            ]
        return messages


def judge(record: Recorded, effects: list[int]) -> Iterable[str]:
    if set(effects) - set(record.started):
        yield "an effect of an attempt that never began"
    if len(effects) > record.attempts or max(Counter(effects).values(), default=0) > 1:
        yield "more effects than attempts"
    if record.guard and len(effects) > 1:
        yield "a guard that let two through"
    if record.verified and len(effects) > 1:
        yield "a script that committed was repeated to be verified"
    if set(effects) & set(record.undone):
        yield "an effect of an attempt that is recorded as having left nothing"
    if record.lifecycle == "Succeeded":
        if not effects:
            yield "a success without its effect"
        elif (
            record.attempts not in effects
            and record.end_reason != "AlreadyApplied"
            and not record.verified
        ):
            yield "a success without the effect of its last attempt"


async def oracle(fleet: Fleet) -> Oracle:
    rows = await fleet.root.fetch(RECORDED)
    asked = Oracle({_key(row, row["database_name"]): _recorded(row) for row in rows})
    for database in fleet.databases:
        for row in await fleet.query(database, "select * from probe"):
            asked.effects.setdefault(_key(row, database), []).append(row["attempt"])
    return asked


async def told(root: asyncpg.Connection) -> list[str]:
    """What the control database itself gives away."""
    return [
        f"{name}: {row['what']}"
        for name, query in INVARIANTS.items()
        for row in await root.fetch(query)
    ]


async def output_violations(fleet: Fleet) -> list[str]:
    """Scripts with an output return one row: no target has two, and one that succeeded has it."""
    targets = await fleet.root.fetch(WITH_OUTPUT)
    messages = []
    for place in {(row["database"], row["table"]) for row in targets}:
        database, table = place
        counts = "select internal_execution_id as id, count(*) as n from {} group by 1"
        exists = await fleet.query(database, "select to_regclass($1) is not null as it", table)
        rows = await fleet.query(database, counts.format(table)) if exists[0]["it"] else []
        written = {row["id"]: row["n"] for row in rows}
        messages += [f"I19_a doubled row: {id} {n}" for id, n in written.items() if n > 1]
        messages += [
            f"I19_a success without its rows: {row['id']}"
            for row in targets
            if (row["database"], row["table"]) == place
            and row["lifecycle"] == "Succeeded"
            and row["id"] not in written
        ]
    return messages


async def violations(fleet: Fleet) -> list[str]:
    found = await told(fleet.root) + (await oracle(fleet)).violations()
    return found + await output_violations(fleet)


def _key(row: Any, database: str) -> Key:
    return row["job_execution_id"], row["step_id"], database


def _recorded(row: Any) -> Recorded:
    return Recorded(**{name: row[name] for name in Recorded.__annotations__})
