"""Checks 24–28: each state has a deadline, and whoever misses it fails, alone."""

from fsm.launch.protocol import Kind, Reason
from tests.integration.workload_checks.table import check
from tests.support.launching import Yard, minutes


@check(24)
async def what_nobody_claims_fails_when_nobody_is_there(yard: Yard) -> None:
    await yard.launcher("D1", "default")
    served = await yard.enqueue()
    alone = await yard.enqueue(launch_group="nobody's")
    await yard.later(minutes(31))
    assert await yard.sweep() == 1

    alone = await yard.get(alone)
    assert (alone.state, alone.reason) == ("failure", Reason.NOT_CLAIMED)
    assert alone.source == "workload-monitor-claim"
    assert await yard.state(served) == "pending"  # a launcher lives: it may wait for ever

    await yard.later(minutes(29), launchers_live=False)
    assert await yard.sweep() == 0  # and waits as long for one that went away
    await yard.later(minutes(2), launchers_live=False)
    assert await yard.sweep() == 1


@check(25)
async def what_is_not_started_fails(yard: Yard) -> None:
    workload = await yard.at("claimed")
    await yard.later(minutes(29))
    assert await yard.sweep() == 0
    await yard.later(minutes(2))
    await yard.sweep()

    workload = await yard.get(workload)
    assert (workload.state, workload.reason) == ("failure", Reason.NOT_STARTED)
    assert workload.source == "workload-monitor-start"


@check(26)
async def the_silent_fail_and_the_speaking_live(yard: Yard) -> None:
    launched, silent, speaking = [await yard.at(s) for s in ("launched", "running", "running")]
    for _ in range(24 * 60 // 9):
        await yard.later(minutes(9))
        await yard.beat(speaking)
        await yard.sweep()

    for workload in (launched, silent):
        workload = await yard.get(workload)
        assert (workload.state, workload.reason) == ("failure", Reason.SILENT)
        assert workload.source == "workload-monitor-heartbeat"
    assert await yard.state(speaking) == "running"


@check(27)
async def only_commands_grow_too_old(yard: Yard) -> None:
    command = await yard.at("running", Kind.COMMAND)
    others = [await yard.at("running", kind) for kind in (Kind.ENGINE, Kind.HOST)]
    await yard.later(minutes(239))
    for workload in (command, *others):
        await yard.beat(workload)
    assert await yard.sweep() == 0
    await yard.later(minutes(2))
    await yard.sweep()
    await yard.later(minutes(29 * 24 * 60))
    for workload in others:
        await yard.beat(workload)
    await yard.sweep()

    command = await yard.get(command)
    assert (command.state, command.reason) == ("failure", Reason.TOO_OLD)
    assert command.source == "workload-monitor-timeout"
    assert [await yard.state(w) for w in others] == ["running", "running"]


@check(28)
async def one_bad_row_stops_no_other(yard: Yard) -> None:
    made = [await yard.at("running") for _ in range(3)]
    await yard.later(minutes(11))
    await yard.db.execute(
        f"""create function refuse() returns trigger language plpgsql as $$
            begin raise exception 'not this one'; end $$;
            create trigger refuse before update of ended_at on workload for each row
            when (old.id = '{made[1].id}') execute function refuse()"""
    )

    assert await yard.sweep() == 2
    assert [await yard.state(w) for w in made] == ["failure", "running", "failure"]
