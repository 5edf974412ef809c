"""Random sequences of sp_* calls against a small model: after each of them the views show the model."""

import asyncio
from dataclasses import dataclass, field

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.support.definitions import SERVERS, Definer
from tests.support.control_db import installed

NAMES = st.sampled_from(["a", "A", "b", "c'$$", "E'x'"])
NUMBERS = st.integers(0, 9)
PLACES = st.none() | st.integers(0, 4)
KINDS = st.sampled_from(["job", "target_group", "credential"])
EMPTY = """
truncate jobs_internal.job, jobs_internal.target_group, jobs_internal.credential, jobs_internal.script,
         jobs_internal.job_step, jobs_internal.job_version, jobs_internal.target_group_member,
         jobs_internal.audit cascade
"""


@dataclass
class Step:
    name: str
    script: str
    group: str
    credential: str | None = None

    def row(self):
        return (self.name, self.script, self.group, self.credential)


@dataclass
class Job:
    name: str
    version: int = 0
    steps: list[Step] = field(default_factory=list)
    history: dict[int, list[tuple]] = field(default_factory=lambda: {0: []})

    def grow(self, steps):
        self.steps, self.version = steps, self.version + 1
        self.history[self.version] = [step.row() for step in steps]

    def find(self, name):
        return next((s for s in self.steps if s.name.lower() == name.lower()), None)


class Refused(Exception):
    pass


def must(sqlstate, holds):
    if not holds:
        raise Refused(sqlstate)


class World:
    """What the functions promise, in as few words as possible. Keys are names in lower case."""

    def __init__(self):
        self.jobs, self.groups, self.credentials, self.deleted = {}, {}, {}, 0

    def job(self, name):
        must("MU010", name.lower() in self.jobs)
        return self.jobs[name.lower()]

    def add(self, kind, name, value):
        must("MU011", name.lower() not in kind)
        kind[name.lower()] = value

    def reference(self, kind, name):
        must("MU012", name.lower() in kind)
        return kind[name.lower()]

    def sp_add_job(self, job_name):
        self.add(self.jobs, job_name, Job(job_name))

    def sp_update_job(self, job_name, new_name):
        job = self.job(job_name)
        must("MU011", new_name.lower() == job_name.lower() or new_name.lower() not in self.jobs)
        del self.jobs[job_name.lower()]
        job.name = new_name
        self.jobs[new_name.lower()] = job

    def sp_delete_job(self, job_name):
        self.job(job_name)
        del self.jobs[job_name.lower()]
        self.deleted += 1

    def sp_add_target_group(self, target_group_name):
        self.add(self.groups, target_group_name, target_group_name)

    def sp_add_credential(self, credential_name):
        self.add(self.credentials, credential_name, credential_name)

    def used(self, name, which):
        return any(getattr(s, which) == name for job in self.jobs.values() for s in job.steps)

    def sp_delete_target_group(self, target_group_name):
        must("MU010", target_group_name.lower() in self.groups)
        must("MU013", not self.used(self.groups[target_group_name.lower()], "group"))
        del self.groups[target_group_name.lower()]

    def sp_delete_credential(self, credential_name):
        must("MU010", credential_name.lower() in self.credentials)
        must("MU013", not self.used(self.credentials[credential_name.lower()], "credential"))
        del self.credentials[credential_name.lower()]

    def sp_add_jobstep(self, job_name, step_id, step_name, target_group_name, credential_name):
        job = self.job(job_name)
        last = len(job.steps) + 1
        must("MU012", step_id is None or 1 <= step_id <= last)
        name = step_name or (None if job.steps else "JobStep")
        must("MU012", name is not None)
        must("MU011", job.find(name) is None)
        credential = credential_name and self.reference(self.credentials, credential_name)
        group = self.reference(self.groups, target_group_name)
        steps = list(job.steps)
        steps.insert((step_id or last) - 1, Step(name, "select 1", group, credential))
        job.grow(steps)

    def sp_update_jobstep(self, job_name, step_name, new_id, new_name, command, credential_name):
        job = self.job(job_name)
        must("MU010", job.find(step_name) is not None)
        old = job.find(step_name)
        must("MU012", new_id is None or 1 <= new_id <= len(job.steps))
        must("MU011", new_name is None or job.find(new_name) in (None, old))
        credential = old.credential
        if credential_name is not None:
            credential = credential_name and self.reference(self.credentials, credential_name)
        new = Step(new_name or old.name, command or old.script, old.group, credential or None)
        steps = [s for s in job.steps if s is not old]
        steps.insert((new_id or job.steps.index(old) + 1) - 1, new)
        if [s.row() for s in steps] != [s.row() for s in job.steps]:
            job.grow(steps)

    def sp_delete_jobstep(self, job_name, step_id):
        job = self.job(job_name)
        must("MU010", 1 <= step_id <= len(job.steps))
        job.grow([s for number, s in enumerate(job.steps, 1) if number != step_id])


class Machine(RuleBasedStateMachine):
    loop: asyncio.AbstractEventLoop
    definer: Definer

    def __init__(self):
        super().__init__()
        self.run(self.definer.connection.execute("reset role; " + EMPTY))
        self.world, self.seen = World(), {}

    def run(self, what):
        return self.loop.run_until_complete(what)

    def both(self, function, **named):
        try:
            getattr(self.world, function)(**named)
            wanted = None
        except Refused as refused:
            wanted = refused.args[0]
        fixed = {
            "sp_add_credential": {"identity": "u", "secret": "env:A"},
            "sp_add_jobstep": {"command": "select 1"},
        }
        try:
            self.run(self.definer.call(function, **named, **fixed.get(function, {})))
            happened = None
        except asyncpg.PostgresError as error:
            happened = error.sqlstate
        assert happened == wanted

    @initialize()
    def begin(self):
        self.both("sp_add_target_group", target_group_name="a")
        self.both("sp_add_credential", credential_name="b")
        for job in ("a", "b"):
            self.both("sp_add_job", job_name=job)
            for name in ("a", "b", "E'x'"):
                self.both(
                    "sp_add_jobstep", job_name=job, step_id=1, step_name=name,
                    target_group_name="a", credential_name=None,
                )  # fmt: skip

    def pick(self, names, number):
        """One that is there, in any case of letters, or once in a while one that is not."""
        some = [*sorted(names), "nobody"]
        found = some[number % len(some)]
        return found.upper() if number % 2 and found.isascii() else found

    def job(self, number):
        name = self.pick(self.world.jobs, number)
        steps = self.world.jobs[name.lower()].steps if name.lower() in self.world.jobs else []
        return name, [step.name for step in steps]

    def credential(self, which):
        """By number; nothing and '' as they are."""
        if isinstance(which, int):
            return self.pick(self.world.credentials, which)
        return which

    @rule(kind=KINDS, name=NAMES)
    def add(self, kind, name):
        self.both(f"sp_add_{kind}", **{f"{kind}_name": name})

    @rule(kind=KINDS, which=NUMBERS)
    def delete(self, kind, which):
        there = {
            "job": self.world.jobs,
            "target_group": self.world.groups,
            "credential": self.world.credentials,
        }
        self.both(f"sp_delete_{kind}", **{f"{kind}_name": self.pick(there[kind], which)})

    @rule(which=NUMBERS, new=NAMES)
    def rename_job(self, which, new):
        self.both("sp_update_job", job_name=self.job(which)[0], new_name=new)

    @rule(job=NUMBERS, place=PLACES, name=NAMES, group=NUMBERS, credential=st.none() | NUMBERS)
    def add_step(self, job, place, name, group, credential):
        self.both(
            "sp_add_jobstep", job_name=self.job(job)[0], step_id=place, step_name=name,
            target_group_name=self.pick(self.world.groups, group),
            credential_name=self.credential(credential),
        )  # fmt: skip

    @rule(job=NUMBERS, group=NUMBERS)
    def add_step_without_a_name(self, job, group):
        self.both(
            "sp_add_jobstep", job_name=self.job(job)[0], step_id=None, step_name=None,
            target_group_name=self.pick(self.world.groups, group), credential_name=None,
        )  # fmt: skip

    @rule(
        job=NUMBERS, step=NUMBERS, place=PLACES, new=st.none() | NAMES,
        command=st.sampled_from([None, "select 1", "select 2"]),
        credential=st.none() | st.just("") | NUMBERS,
    )  # fmt: skip
    def update_step(self, job, step, place, new, command, credential):
        name, steps = self.job(job)
        self.both(
            "sp_update_jobstep", job_name=name, step_name=self.pick(steps, step), new_id=place,
            new_name=new, command=command, credential_name=self.credential(credential),
        )  # fmt: skip

    @rule(job=NUMBERS, step=NUMBERS, place=st.integers(1, 3))
    def move_step(self, job, step, place):
        name, steps = self.job(job)
        self.both(
            "sp_update_jobstep", job_name=name, step_name=self.pick(steps, step), new_id=place,
            new_name=None, command=None, credential_name=None,
        )  # fmt: skip

    @rule(job=NUMBERS, place=st.integers(0, 4))
    def delete_step(self, job, place):
        self.both("sp_delete_jobstep", job_name=self.job(job)[0], step_id=place)

    @invariant()
    def the_views_show_the_model(self):
        jobs = self.world.jobs.values()
        assert set(self.rows("select job_name, job_version from jobs.jobs")) == {
            (job.name, job.version) for job in jobs
        }
        assert set(self.rows("select job_name, job_version from jobs.job_versions")) == {
            (job.name, version) for job in jobs for version in job.history
        }
        shown = (
            "job_name, job_version, step_id, step_name, command, target_group_name, credential_name"
        )
        assert set(self.rows(f"select {shown} from jobs.jobsteps")) == {
            (job.name, job.version, number, *step.row())
            for job in jobs
            for number, step in enumerate(job.steps, 1)
        }
        assert set(self.rows(f"select {shown} from jobs.jobstep_versions")) == {
            (job.name, version, number, *step)
            for job in jobs
            for version, steps in job.history.items()
            for number, step in enumerate(steps, 1)
        }
        groups = self.rows("select target_group_name from jobs.target_groups")
        assert {name for (name,) in groups} == set(self.world.groups.values())

    @invariant()
    def a_row_version_means_one_state_of_one_thing(self):
        rows = self.rows(
            "select s.row_version, (to_jsonb(s) - '{job_name,job_version}'::text[])::text"
            "  from jobs.jobstep_versions s"
        )
        for version, state in rows:
            assert self.seen.setdefault(version, state) == state

    def rows(self, query):
        return self.run(self.definer.rows(query))


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


@pytest.mark.newest
def test_the_views_show_what_the_model_says_after_any_calls(account):
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(account.connect("root"))
    machine = type("Bound", (Machine,), {"loop": loop, "definer": Definer(connection)})

    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=15, stateful_step_count=25, deadline=None, database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )  # fmt: skip
    finally:
        loop.run_until_complete(connection.close())
        loop.close()
