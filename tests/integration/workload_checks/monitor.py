"""Checks 24–28: each state has a deadline, and whoever misses it fails, alone."""

from fsm.launch.protocol import Kind, Reason
from tests.integration.workload_checks.table import check
from tests.support.launching import QueueFixture, minutes


@check(24)
async def what_nobody_claims_fails_when_nobody_is_there(queue: QueueFixture) -> None:
    await queue.launcher("D1", "default")
    served = await queue.enqueue()
    alone = await queue.enqueue(launch_group="nobody's")
    await queue.later(minutes(31))
    assert await queue.sweep() == 1

    alone = await queue.get(alone)
    assert (alone.state, alone.reason) == ("failure", Reason.NOT_CLAIMED)
    assert alone.source == "workload-monitor-claim"
    assert await queue.state(served) == "pending"  # a launcher lives: it may wait for ever

    await queue.later(minutes(29), launchers_live=False)
    assert await queue.sweep() == 0  # and waits as long for one that went away
    await queue.later(minutes(2), launchers_live=False)
    assert await queue.sweep() == 1


@check(25)
async def what_is_not_started_fails(queue: QueueFixture) -> None:
    workload = await queue.at("claimed")
    await queue.later(minutes(29))
    assert await queue.sweep() == 0
    await queue.later(minutes(2))
    await queue.sweep()

    workload = await queue.get(workload)
    assert (workload.state, workload.reason) == ("failure", Reason.NOT_STARTED)
    assert workload.source == "workload-monitor-start"


@check(26)
async def the_silent_fail_and_the_speaking_live(queue: QueueFixture) -> None:
    launched, silent, speaking = [await queue.at(s) for s in ("launched", "running", "running")]
    for _ in range(24 * 60 // 9):
        await queue.later(minutes(9))
        await queue.beat(speaking)
        await queue.sweep()

    for workload in (launched, silent):
        workload = await queue.get(workload)
        assert (workload.state, workload.reason) == ("failure", Reason.SILENT)
        assert workload.source == "workload-monitor-heartbeat"
    assert await queue.state(speaking) == "running"


@check(27)
async def only_commands_grow_too_old(queue: QueueFixture) -> None:
    command = await queue.at("running", Kind.COMMAND)
    others = [await queue.at("running", kind) for kind in (Kind.ENGINE, Kind.HOST)]
    await queue.later(minutes(239))
    for workload in (command, *others):
        await queue.beat(workload)
    assert await queue.sweep() == 0
    await queue.later(minutes(2))
    await queue.sweep()
    await queue.later(minutes(29 * 24 * 60))
    for workload in others:
        await queue.beat(workload)
    await queue.sweep()

    command = await queue.get(command)
    assert (command.state, command.reason) == ("failure", Reason.TOO_OLD)
    assert command.source == "workload-monitor-timeout"
    assert [await queue.state(w) for w in others] == ["running", "running"]


@check(28)
async def one_bad_row_stops_no_other(queue: QueueFixture) -> None:
    made = [await queue.at("running") for _ in range(3)]
    await queue.later(minutes(11))
    await queue.db.execute(
        f"""create function refuse() returns trigger language plpgsql as $$
            begin raise exception 'not this one'; end $$;
            create trigger refuse before update of ended_at on workload for each row
            when (old.id = '{made[1].id}') execute function refuse()"""
    )

    assert await queue.sweep() == 2
    assert [await queue.state(w) for w in made] == ["failure", "running", "failure"]
