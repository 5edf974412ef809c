"""Checks 1–13, 21–23 and 60–62: what gets into the queue, who gets it, and what stays of it."""

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from fsm.launch import claims
from fsm.launch.protocol import Kind, Priority, Reason, Spec
from muster.core.errors import InvalidRequest
from tests.integration.workload_checks.table import check
from tests.support.launching import QueueFixture, minutes


@check(1)
async def a_new_workload_is_pending_with_a_deadline(queue: QueueFixture) -> None:
    engine = await queue.at("running", account_uid=uuid4())
    id = uuid4()
    async with queue.client(await queue.token(engine)) as engine_client, queue.client() as client:
        answer = await engine_client.post("/create", json={"workloadId": str(id)})
        shown = (await client.get(f"/{id}")).json()

    assert answer.status_code == 204
    assert shown["state"] == "pending"
    workload = await queue.get(id)
    assert abs(workload.deadline - workload.created_at - minutes(30)) < timedelta(seconds=1)


@check(2)
async def the_same_id_again_changes_nothing(queue: QueueFixture) -> None:
    engine = await queue.at("running", account_uid=uuid4())
    id = str(uuid4())
    async with queue.client(await queue.token(engine)) as client:
        await client.post("/create", json={"workloadId": id, "spec": {"arguments": ["first"]}})
        answer = await client.post("/create", json={"workloadId": id, "spec": {"arguments": ["2"]}})

    assert answer.status_code == 200
    assert await claims.depth(queue.db, "default") == 1
    [waiting] = await queue.poll(priority=Priority.HIGH)
    assert waiting.spec == Spec(arguments=("first",))


@check(3)
async def a_workload_is_never_without_its_place_in_the_queue(queue: QueueFixture) -> None:
    older = await queue.enqueue(mutex_key="k")
    with pytest.raises(asyncpg.CheckViolationError):  # the last write of the three fails
        await queue.enqueue(mutex_key="k", priority="neither")

    assert await queue.db.fetchval("select count(*) from workload") == 1
    assert await queue.state(older) == "pending"


@check(4)
async def a_workload_without_a_group_is_refused(queue: QueueFixture) -> None:
    with pytest.raises(InvalidRequest):
        await queue.enqueue(launch_group="")
    with pytest.raises(asyncpg.NotNullViolationError):
        await queue.db.execute(
            "insert into workload (id, kind, priority) values ($1, 'host', 'high')", uuid4()
        )

    assert await queue.db.fetchval("select count(*) from workload") == 0


@check(5)
async def the_oldest_comes_first(queue: QueueFixture) -> None:
    a, b, _ = [await queue.enqueue() for _ in range(3)]

    assert [w.id for w in await queue.poll(2)] == [a.id, b.id]


@check(6)
async def concurrent_polls_give_each_item_once(queue: QueueFixture) -> None:
    made = {(await queue.enqueue(account_uid=uuid4())).id for _ in range(100)}

    polls = await asyncio.gather(*(queue.poll(5) for _ in range(20)))

    given = Counter(w.id for poll in polls for w in poll)
    assert set(given) == made
    assert set(given.values()) == {1}


@check(7)
async def what_is_not_claimed_is_offered_again(queue: QueueFixture) -> None:
    a = await queue.enqueue()
    await queue.poll()

    await queue.later(timedelta(seconds=299))
    assert await queue.poll() == []
    await queue.later(timedelta(seconds=2))
    assert [w.id for w in await queue.poll()] == [a.id]


@check(8)
async def groups_are_apart(queue: QueueFixture) -> None:
    await queue.launcher("D2", "g2")
    await queue.launcher("D1", "g1")
    workload = await queue.enqueue(launch_group="g1")

    assert await queue.poll(group="g2") == []
    assert await queue.take("D2", group="g2") is None
    assert not await queue.claim(workload, "D2", "g2")
    assert (await queue.take("D1", group="g1")).id == workload.id


@check(9)
async def priorities_are_two_queues(queue: QueueFixture) -> None:
    for _ in range(100):
        await queue.enqueue()
    high = await queue.enqueue(priority=Priority.HIGH)

    assert [w.id for w in await queue.poll(50, Priority.HIGH)] == [high.id]
    assert len(await queue.poll(50)) == 50


@check(10)
async def one_launcher_wins_a_claim(queue: QueueFixture) -> None:
    await queue.launcher("D1")
    await queue.launcher("D2")
    for _ in range(5):
        workload = await queue.enqueue()
        won = await asyncio.gather(queue.claim(workload, "D1"), queue.claim(workload, "D2"))
        assert sorted(won) == [False, True]


@check(11)
async def a_claim_can_be_repeated(queue: QueueFixture) -> None:
    workload = await queue.at("claimed")
    await queue.later(minutes(5))
    before = (await queue.get(workload)).start_by
    async with queue.client() as client:
        again = await client.put("/claim", json={"workloadId": str(workload.id)})

    assert again.json() == {"claimed": True}
    assert (await queue.get(workload)).start_by == before


@check(12)
async def what_is_over_can_t_be_claimed(queue: QueueFixture) -> None:
    await queue.launcher()
    workload = await queue.at("cancelled")
    async with queue.client() as client:
        answer = await client.put("/claim", json={"workloadId": str(workload.id)})

    assert (answer.status_code, answer.json()) == (200, {"claimed": False})
    assert await queue.state(workload) == "cancelled"


@check(13)
async def a_claim_takes_it_out_of_the_queue(queue: QueueFixture) -> None:
    await queue.at("claimed")

    await queue.later(timedelta(seconds=301))

    assert await queue.poll() == []


@check(21)
async def the_newest_of_a_mutex_key_stays(queue: QueueFixture) -> None:
    a = await queue.enqueue(mutex_key="k")
    b = await queue.enqueue(mutex_key="k")

    a = await queue.get(a)
    assert (a.state, a.source, a.reason) == ("failure", "workload-api", Reason.SUPERSEDED)
    assert str(b.id) in a.message
    assert a.reason.wanted  # so that nobody retries it
    assert await queue.state(b) == "pending"
    assert (await queue.queue.active(queue.db, "k")).id == b.id


@check(22)
async def concurrent_enqueuers_leave_one(queue: QueueFixture) -> None:
    made = await asyncio.gather(*(queue.enqueue(mutex_key="k") for _ in range(10)))

    states = Counter([await queue.state(w) for w in made])
    assert states == {"pending": 1, "failure": 9}
    assert len(queue.ended) == 9


@check(23)
async def an_ended_one_is_not_superseded(queue: QueueFixture) -> None:
    a = await queue.at("success", mutex_key="k")
    await queue.enqueue(mutex_key="k")

    assert await queue.state(a) == "success"


@check(60)
async def each_step_has_its_time(queue: QueueFixture) -> None:
    workload = await queue.enqueue()
    await queue.launcher()
    moves = [
        lambda: queue.claim(workload),
        lambda: queue.do("launched", workload),
        lambda: queue.do("running", workload),
        lambda: queue.do("success", workload, None, source="test"),
    ]
    for move in moves:
        await queue.later(minutes(1))
        await move()

    w = await queue.get(workload)
    steps = [w.created_at, w.claimed_at, w.launched_at, w.running_at, w.ended_at]
    lags = [b - a for a, b in zip(steps, steps[1:], strict=False)]
    assert [round(lag.total_seconds() / 60) for lag in lags] == [1, 1, 1, 1]
    assert w.queued_at >= w.created_at


@check(61)
async def depth_is_what_can_be_had_and_stats_is_all(queue: QueueFixture) -> None:
    for _ in range(3):
        await queue.enqueue()
    await queue.poll(1)
    async with queue.client() as client:
        depth = (await client.post("/queue/depth", json={})).json()
        stats = (await client.get("/queue/stats")).json()["stats"]

    assert depth == {"count": 2}
    assert [(s["priority"], s["queued"]) for s in stats] == [("default", 3)]


@check(62)
async def old_rows_go_but_nothing_that_lives(queue: QueueFixture) -> None:
    for _ in range(3):
        await queue.at("failure", Kind.HOST)
    waiting = await queue.enqueue()
    alive = await queue.at("running")
    await queue.later(timedelta(days=8))
    recent = await queue.at("failure")
    async with queue.client() as client:
        counts = [(await client.post("/queue/clean", json={"limit": 2})).json() for _ in range(3)]

    assert counts == [{"count": 2}, {"count": 1}, {"count": 0}]
    left = {row["id"] for row in await queue.db.fetch("select id from workload")}
    assert left == {waiting.id, alive.id, recent.id}
