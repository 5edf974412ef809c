"""Each invariant of the road is silent on a history without a fault and speaks on a planted violation."""

import contextlib

import pytest

from tests.chaos.run_invariants import EFFECT, INVARIANTS, PROBE, Recorded, judge, told, violations
from tests.support.fleet import Fleet, start_fleet, plane
from tests.support.launching import until

pytestmark = pytest.mark.newest
together = pytest.mark.asyncio(loop_scope="module")

TWICE = f"do $$ begin if $(attempt) < 2 then raise exception 'not yet' using errcode = '40001'; end if; end $$; {EFFECT}"

# Rows of the history: its second step, whose targets have two attempts, or anything of one kind.
ONE = "(job_execution_id, step_id, ordinal) = (select job_execution_id, step_id, ordinal from jobs_internal.task where attempt = 2 and lifecycle = 'Succeeded' limit 1)"
RUN = "job_execution_id = (select job_execution_id from jobs_internal.task where attempt = 2 and lifecycle = 'Succeeded' limit 1)"

# Triggers are off; a constraint that forbids the violation is taken away first: the invariant must not rely on it.
PLANTED = {
    "I09": f"update jobs_internal.task set end_time = end_time + interval '1 h' where attempt = 1 and {ONE}",
    "I10": f"update jobs_internal.task set epoch = epoch + 1 where attempt = 1 and {ONE}",
    "I11": f"""drop index jobs_internal.one_live_attempt;
               update jobs_internal.task set lifecycle = 'InProgress', end_time = null where {ONE}""",
    "I12": f"update jobs_internal.task set lifecycle = 'Succeeded' where {ONE}",
    "I12 last": f"update jobs_internal.task set lifecycle = 'Failed' where attempt = 2 and {ONE}",
    "I12 other": f"update jobs_internal.target_execution set lifecycle = 'Failed' where {ONE}",
    "I13": f"update jobs_internal.target_execution set end_time = create_time where {ONE}",
    "I13 target": f"update jobs_internal.step_execution set end_time = create_time where {RUN}",
    "I13 step": f"update jobs_internal.job_execution set end_time = create_time where {RUN}",
    "I14": f"update jobs_internal.target_execution set attempts = 12 where {ONE}",
    "I15": f"""update jobs_internal.target_execution
                  set lifecycle = 'InProgress', end_time = null, start_time = start_time - interval '1 day'
                where {ONE}""",
    "I15 step": f"""update jobs_internal.target_execution set end_time = end_time - interval '1 h' where {RUN};
                    update jobs_internal.step_execution
                       set lifecycle = 'InProgress', end_time = null where {RUN}""",
    "I15 run": f"""update jobs_internal.job_execution set lifecycle = 'InProgress', end_time = null,
                          cancel_requested_at = clock_timestamp() - interval '31 s' where {RUN}""",
    "I15 order": """update jobs_internal.cancellation
                       set completed_at = null, requested_at = requested_at - interval '31 s'""",
    "I16": f"update jobs_internal.step_execution set lifecycle = 'Failed' where step_id = 1 and {RUN}",
    "I16 run": f"update jobs_internal.job_execution set lifecycle = 'Failed' where {RUN}",
    "I16 early": f"update jobs_internal.step_execution set end_time = end_time - interval '1 h' where {RUN}",
    "I16 lives": f"""update jobs_internal.target_execution set lifecycle = 'InProgress', end_time = null
                      where {ONE}""",
    "I17": """insert into jobs_internal.slot (job_id, slot, outcome, job_execution_id)
              select job_id, now(), 'fired', gen_random_uuid() from jobs_internal.job limit 1""",
    "I17 undecided": f"""update jobs_internal.job_execution set origin = 'slot', slot = now() where {RUN}""",
    "I17 twice": f"""alter table jobs_internal.slot drop constraint slot_pkey;
                     update jobs_internal.job_execution set origin = 'slot', slot = now() where {RUN};
                     insert into jobs_internal.slot (job_id, slot, outcome, job_execution_id)
                     select job_id, slot, 'fired', job_execution_id
                       from jobs_internal.job_execution, generate_series(1, 2) where {RUN}""",
    "R01": f"""update jobs_internal.task set lifecycle = 'InProgress', end_time = null
                where attempt = 2 and {ONE}""",
    "R01 target": f"""update jobs_internal.target_execution set lifecycle = 'WaitingForRetry', end_time = null
                       where {ONE}""",
    "R02": f"""update jobs_internal.task set lifecycle = 'Created', start_time = null, end_time = null
                where attempt = 2 and {ONE}""",
    "R03": f"delete from jobs_internal.task where attempt = 1 and {ONE}",
    "R03 more": f"update jobs_internal.target_execution set attempts = 3 where {ONE}",
    "R04": f"""update jobs_internal.target_execution set end_time = end_time + interval '1 s' where {ONE}""",
    "R05": "update jobs_internal.target_ledger set lifecycle = 'Failed' where lifecycle = 'Succeeded'",
    "R05 lost": "delete from jobs_internal.target_ledger",
    "R06": f"""update jobs_internal.task set lifecycle = 'InProgress', end_time = null, host_id = gen_random_uuid()
                where attempt = 2 and {ONE}""",
    "R07": f"update jobs_internal.target_execution set wave = ordinal, start_time = create_time where {RUN}",
    "R08": f"""update jobs_internal.step_execution set halted_at = create_time, halt_rule = 'SameError' where {RUN}""",
    "R09": f"update jobs_internal.target_execution set lifecycle = 'Failed' where step_id = 1 and {RUN}",
    "R09 early": f"update jobs_internal.target_execution set end_time = end_time + interval '1 h' where step_id = 1 and {RUN}",
    "R09 skipped": f"update jobs_internal.target_execution set end_reason = 'PreviousStepNotSucceeded' where step_id = 2 and {RUN}",
    "R10": f"update jobs_internal.run_attempt set newly_succeeded = newly_succeeded + 1 where {RUN}",
    "R10 running": f"""update jobs_internal.run_attempt set lifecycle = 'InProgress', end_time = null where {RUN}""",
    "R10 early": f"""insert into jobs_internal.run_attempt select job_execution_id, number + 1, lifecycle, start_time,
                          end_time, 0 from jobs_internal.run_attempt where {RUN}""",
}  # fmt: skip


@contextlib.asynccontextmanager
async def history(postgres, targets, folder):
    """A retry, a guard, a failure and a cancellation, and nothing out of the ordinary."""
    async with (
        plane(postgres) as (settings, db),
        start_fleet(settings, db, targets, folder, databases=2) as fleet,
    ):
        for name in fleet.databases:
            await fleet.query(name, PROBE)
        await fleet.job("retried", EFFECT, options={"guard": True})
        await fleet.call(
            "sp_add_jobstep", job_name="retried", step_name="after", command=TWICE,
            target_group_name="everything", options={"jitter": 0, "advance": "perTarget"},
        )  # fmt: skip
        await fleet.job("failing", f"{EFFECT}; select 1/0")
        await fleet.job("stopped", f"{EFFECT}; select pg_sleep(60)")
        for name in ("retried", "failing"):
            await fleet.call("sp_update_job", job_name=name, run_attempts={"enabled": True})
        runs = [await fleet.start(name) for name in ("retried", "failing", "stopped")]

        async def running() -> bool:
            return (await fleet.lifecycles(runs[2]))["InProgress"] == 2

        await until(running)
        await fleet.root.execute("select jobs.sp_stop_job($1)", runs[2])
        ends = [await fleet.ended(run) for run in runs]
        assert ends == ["Succeeded", "Failed", "Canceled"]
        yield fleet


@pytest.fixture(scope="module")
def make_fleet(postgres, targets, tmp_path_factory):
    return lambda: history(postgres, targets, tmp_path_factory.mktemp("history"))


@together
async def test_a_history_without_a_fault_has_no_violation(fleet: Fleet):
    assert await violations(fleet) == []


@pytest.mark.parametrize("name", [*PLANTED])
@together
async def test_a_planted_violation_is_found(fleet: Fleet, name: str):
    root = await fleet.account.connect("root")
    transaction = root.transaction()
    await transaction.start()
    try:
        await root.execute("set local session_replication_role = replica")
        await root.execute(PLANTED[name])
        found = await told(root)
    finally:
        await transaction.rollback()
        await root.close()

    assert any(each.startswith(name[:3]) for each in found), found


def test_every_invariant_is_planted():
    assert {name[:3] for name, _ in INVARIANTS.items()} == {name[:3] for name in PLANTED}


@together
async def test_an_effect_that_nobody_recorded_is_found(fleet: Fleet):
    await fleet.query(0, "insert into probe values (gen_random_uuid(), 1, 1)")
    try:
        found = await violations(fleet)
    finally:
        await fleet.query(0, "delete from probe where ctid = (select max(ctid) from probe)")

    assert [each.partition(":")[0] for each in found] == ["I18_an effect of nothing that is known"]
    assert await violations(fleet) == []


def recorded(lifecycle: str = "Succeeded", attempts: int = 1, **more) -> Recorded:
    given = {
        "end_reason": None,
        "guard": False,
        "verified": False,
        "undone": [],
        "started": [*range(1, attempts + 1)],
    }
    return Recorded(lifecycle=lifecycle, attempts=attempts, **(given | more))


@pytest.mark.parametrize(
    ("record", "effects", "wrong"),
    [
        (recorded(), [1], []),
        (recorded(attempts=2, undone=[1]), [2], []),
        (recorded("Failed", undone=[1]), [], []),
        (recorded("Failed", end_reason="OutcomeUnknown"), [1], []),
        (recorded("Failed", end_reason="OutcomeUnknown"), [], []),
        (recorded(attempts=2, end_reason="AlreadyApplied", guard=True), [1], []),
        (recorded("InProgress"), [1], []),
        (recorded(), [], ["a success without its effect"]),
        (
            recorded(),
            [1, 2],
            ["an effect of an attempt that never began", "more effects than attempts"],
        ),
        (recorded(), [1, 1], ["more effects than attempts"]),
        (recorded(attempts=2), [1, 2, 2], ["more effects than attempts"]),
        (recorded(attempts=2, guard=True), [1, 2], ["a guard that let two through"]),
        (recorded(attempts=2), [1], ["a success without the effect of its last attempt"]),
        (
            recorded("Failed", undone=[1]),
            [1],
            ["an effect of an attempt that is recorded as having left nothing"],
        ),
        (
            recorded("Canceled", undone=[1]),
            [1],
            ["an effect of an attempt that is recorded as having left nothing"],
        ),
    ],
)
def test_the_oracle_believes_the_targets(record, effects, wrong):
    assert [*judge(record, effects)] == wrong
