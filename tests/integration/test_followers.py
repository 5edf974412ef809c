"""Short tasks of one place follow each other: known to the host in time, begun one after the other."""

import pytest

from tests.support.fleet import Fleet, fleet

pytestmark = pytest.mark.newest

ALONE = "lock table public.gate in access exclusive mode nowait; select 1"
SLOW = "select pg_sleep(case when '$(target_schema_name)' = 't05' then 4 else 0 end)"


@pytest.fixture
async def here(settings, db, targets, tmp_path):
    async with fleet(settings, db, targets, tmp_path, databases=1) as made:
        await made.query(0, "create table gate ()")
        for number in range(1, 25):
            await made.query(0, f"create schema t{number:02}")
        await made.call("sp_add_target_group", target_group_name="schemas")
        await made.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=made.databases[0], schema_pattern="t%",
        )  # fmt: skip
        yield made


async def test_one_begins_when_the_one_before_is_over_and_is_with_the_host_already(here: Fleet):
    run = await here.run(ALONE, group="schemas", options={"slotsPerDatabase": 1})

    tasks = sorted(await here.tasks(run), key=lambda task: task["start_time"])
    assert await here.lifecycles(run) == {"Succeeded": 24}
    assert {(task["attempt"], task["sqlstate"]) for task in tasks} == {(1, None)}
    pairs = zip(tasks, tasks[1:], strict=False)
    assert any(then["create_time"] < task["end_time"] for task, then in pairs)


async def test_who_follows_a_slow_one_does_not_wait_for_it(here: Fleet):
    run = await here.run(SLOW, group="schemas", options={"slotsPerDatabase": 2})

    by_end = sorted(await here.targets_of(run), key=lambda target: target["end_time"])
    assert await here.lifecycles(run) == {"Succeeded": 24}
    assert {target["attempts"] for target in by_end} == {1}
    assert by_end[-1]["ordinal"] == 5
