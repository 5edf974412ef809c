"""The queue beyond the contract: fairness, patience, hooks, and who may say what."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from fsm.launch import claims
from fsm.launch.monitor import API, MONITOR, tick
from fsm.launch.protocol import BASE, Kind, Priority, Reason, Spec
from fsm.launch.tokens import LauncherTokens
from fsm.launch.workload import Over
from muster.core.errors import Conflict, Internal, NotFound, Unavailable
from tests.support.launching import QueueFixture, minutes, original


@pytest.fixture
def queue(db, settings) -> QueueFixture:
    return QueueFixture(db, original(settings))


async def test_accounts_take_turns(queue):
    await queue.launcher()
    many, few = uuid4(), uuid4()
    for _ in range(5):
        await queue.enqueue(account_uid=many)
    for _ in range(2):
        await queue.enqueue(account_uid=few)

    taken = [await queue.take() for _ in range(7)]

    assert [w.account_uid for w in taken[:4]] == [many, few, many, few]
    assert [w.account_uid for w in taken[4:]] == [many] * 3


async def test_an_account_with_starts_under_way_comes_later(queue):
    await queue.launcher()
    greedy, modest = uuid4(), uuid4()
    for _ in range(4):
        await queue.enqueue(account_uid=greedy)
    for _ in range(2):
        await queue.take()
    await queue.enqueue(account_uid=modest)

    assert (await queue.take()).account_uid == modest


async def test_polls_take_turns_as_well(queue):
    many, few = uuid4(), uuid4()
    for account in (many, many, many, few):
        await queue.enqueue(account_uid=account)

    assert [w.account_uid for w in await queue.poll(3)] == [many, few, many]


async def test_a_successor_waits_until_the_end_of_the_old_one_is_seen(queue):
    old = await queue.at("running", mutex_key="k")
    await queue.enqueue(mutex_key="k")

    assert await queue.take() is None
    await queue.do("gone", old, "D1", 0)
    assert await queue.take() is not None


async def test_a_successor_does_not_wait_for_ever(queue):
    await queue.at("running", mutex_key="k")
    new = await queue.enqueue(mutex_key="k")

    await queue.later(timedelta(seconds=46))

    assert (await queue.take()).id == new.id


async def test_a_cap_holds_over_launchers_that_take_at_once(queue):
    queue.settings = replace(queue.settings, max_running_engine=3)
    for name in ("D1", "D2", "D3"):
        await queue.launcher(name)
    for _ in range(8):
        await queue.enqueue()

    taken = await asyncio.gather(*(queue.take(f"D{n % 3 + 1}") for n in range(9)))

    assert sum(w is not None for w in taken) == 3


async def test_a_released_claim_keeps_its_place_and_its_tries(queue):
    first = await queue.at("claimed")
    await queue.enqueue()
    async with queue.db.transaction() as tx:
        await claims.release(tx, queue.settings, first.id, launcher="D1")

    again = await queue.take()

    assert (again.id, again.attempt) == (first.id, 0)


async def test_a_missing_result_is_a_failure(queue):
    workload = await queue.at("running", Kind.COMMAND)
    async with queue.client(await queue.token(workload)) as client:
        answer = await client.put("/success", json={"workloadId": str(workload.id)})

    ended = await queue.get(workload)
    assert answer.status_code == 204
    assert (ended.state, ended.reason) == ("failure", Reason.NO_RESULT)


async def test_the_database_refuses_what_must_never_be(queue):
    over = await queue.at("success")
    running = await queue.at("running", mutex_key="k")
    wrong = [
        f"update workload set state = 'running', ended_at = null, beat_by = now() where id = '{over.id}'",
        f"update workload set state = 'launched' where id = '{running.id}'",
        f"update workload set beat_by = null where id = '{running.id}'",
        f"update workload set reason = 'because' where id = '{over.id}'",
        "insert into workload (id, kind, priority, launch_group, mutex_key, claim_by)"
        f" values ('{uuid4()}', 'host', 'high', 'g', 'k', now())",
    ]
    for statement in wrong:
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await queue.db.execute(statement)


async def test_reasons_are_the_same_in_both_places(queue):
    definition = await queue.db.fetchval(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'known_reason'"
    )
    assert all(f"'{reason}'" in definition for reason in Reason)
    assert definition.count("::text") == len(Reason)


async def test_cancel_finds_by_key_and_by_id_and_is_content_with_nothing(queue):
    a, b = await queue.enqueue(mutex_key="k"), await queue.enqueue()
    async with queue.db.transaction() as tx:
        by_key = await queue.queue.cancel(tx, "k", Reason.ACCOUNT_DELETED)
        by_id = await queue.queue.cancel(tx, b.id, Reason.FENCED)
        nothing = await queue.queue.cancel(tx, "k", Reason.FENCED)

    assert (by_key.id, by_key.reason) == (a.id, Reason.ACCOUNT_DELETED)
    assert (by_id.id, by_id.reason, by_id.gone_at is None) == (b.id, Reason.FENCED, False)
    assert nothing is None


async def test_what_the_hook_writes_commits_with_the_end(queue):
    async def hook(tx, workload):
        await tx.execute("insert into told values ($1)", workload.id)

    await queue.db.execute("create table told (id uuid)")
    object.__setattr__(queue.queue, "on_end", hook)
    workload = await queue.at("running")
    with pytest.raises(RuntimeError):
        async with queue.db.transaction() as tx:
            await queue.queue.failure(tx, workload.id, reason=Reason.EXITED, source="test")
            raise RuntimeError

    assert await queue.db.fetchval("select count(*) from told") == 0
    await queue.do("failure", workload, reason=Reason.EXITED, source="test")
    assert await queue.db.fetchval("select count(*) from told") == 1


async def test_a_hook_that_refuses_takes_nothing_back(queue):
    async def hook(tx, _workload):
        await tx.execute("create table half (x int)")
        raise Internal("the machine has ended")

    object.__setattr__(queue.queue, "on_end", hook)
    workload = await queue.at("running")
    await queue.do("failure", workload, reason=Reason.EXITED, source="test")

    assert await queue.state(workload) == "failure"
    assert await queue.db.fetchval("select to_regclass('half')") is None


async def test_the_account_s_machine_looks_when_its_workload_moves(queue):
    account = uuid4()
    await queue.db.execute(
        "insert into machine (uid, lifecycle, resource_id, state, due_at)"
        " values ($1, 'account', 'r', 'starting_instance', clock_timestamp() + interval '1 h')",
        account,
    )
    await queue.at("running", account_uid=account)

    assert await queue.db.fetchval("select due_at <= clock_timestamp() from machine")


async def test_forgetting_an_account_spares_what_may_still_live(queue):
    account = uuid4()
    await queue.at("failure", account_uid=account)
    alive = await queue.at("running", account_uid=account)
    await queue.do("cancelled", alive, reason=Reason.ACCOUNT_DELETED, source="machine")
    async with queue.db.transaction() as tx:
        await queue.queue.forget(tx, account)

    assert [w.id for w in await queue.queue.of_account(queue.db, account)] == [alive.id]
    await queue.do("gone", alive, "D1", 0)
    async with queue.db.transaction() as tx:
        await queue.queue.forget(tx, account)
    assert await queue.queue.of_account(queue.db, account) == []


@pytest.mark.parametrize("who", [MONITOR, API])
async def test_after_a_downtime_everybody_has_one_silent_period(queue, who):
    workload = await queue.at("running")
    await tick(queue.db, queue.queue, who)
    await queue.db.execute(
        "update watch set ticked_at = ticked_at - interval '20 min', judges_from = judges_from - interval '1 h'"
    )
    await queue.later(minutes(20))  # both were away, and what was said in between nobody heard

    await tick(queue.db, queue.queue, who)
    assert await queue.monitor.sweep() == 0
    await queue.db.execute("update watch set judges_from = judges_from - interval '9 min'")
    assert await queue.monitor.sweep() == 0
    await queue.db.execute("update watch set judges_from = judges_from - interval '2 min'")
    assert await queue.monitor.sweep() == 1
    assert (await queue.get(workload)).reason == Reason.SILENT


async def test_silence_proves_nothing_while_the_api_is_away(queue):
    await queue.at("running")
    unstarted = await queue.at("claimed")
    await tick(queue.db, queue.queue, API)
    await queue.db.execute(
        "update watch set ticked_at = ticked_at - interval '6 min', judges_from = judges_from - interval '1 h'"
    )
    await queue.later(minutes(31))

    assert await queue.sweep() == 1
    assert await queue.state(unstarted) == "failure"


async def test_one_monitor_judges_at_a_time_and_tells_when(queue):
    async with queue.db.transaction() as tx:
        await tx.execute("select pg_advisory_xact_lock($1)", 0x6D75736D)
        assert await queue.monitor.sweep() == 0
    assert await queue.db.fetchval("select count(*) from watch") == 0

    await queue.monitor.sweep()
    assert await queue.db.fetchval(
        "select clock_timestamp() - ticked_at < interval '10 s' from watch"
    )


async def test_a_monitor_outlives_an_outage(queue):
    stop = asyncio.Event()

    sweeps = 0

    async def away():
        nonlocal sweeps
        sweeps += 1
        if sweeps == 2:
            stop.set()
        raise Unavailable("the database is away")

    queue = QueueFixture(
        queue.db, replace(queue.settings, monitor_sweep=timedelta(milliseconds=10))
    )
    object.__setattr__(queue.monitor, "sweep", away)
    await asyncio.wait_for(queue.monitor.run(stop), 5)

    assert sweeps == 2


async def test_two_launchers_never_share_a_name(queue):
    async def register(home: int):
        return await claims.register(
            queue.db,
            queue.settings,
            name="L",
            group="g",
            home=UUID(int=home),
            capacity={},
            version="",
        )

    await register(1)
    with pytest.raises(Conflict):
        await register(2)
    await queue.db.execute("update launcher set heartbeat_at = heartbeat_at - interval '11 min'")
    assert (await register(2)).home == UUID(int=2)


async def test_nobody_enables_a_launcher_that_is_not_there(queue):
    async with queue.db.transaction() as tx:
        with pytest.raises(NotFound):
            await claims.enable(tx, "nobody", enabled=True)


async def test_another_launcher_can_t_say_that_it_is_gone(queue):
    workload = await queue.at("running")

    with pytest.raises(Over):
        await queue.do("gone", workload, "D2", 0)
    assert await queue.state(workload) == "running"


class TestWhoMaySayWhat:
    async def test_a_token_is_useless_for_another_workload(self, queue):
        mine, other = await queue.at("running"), await queue.at("running")
        async with queue.client(await queue.token(mine)) as client:
            for move in ("running", "heartbeat", "success", "failure", "cancel"):
                answer = await client.put(f"/{move}", json={"workloadId": str(other.id)})
                assert answer.status_code == 403
            assert (await client.get(f"/{other.id}")).status_code == 403
            assert (await client.get(f"/{uuid4()}")).status_code == 403
        assert await queue.get(other) == other

    async def test_a_new_start_makes_the_old_token_useless(self, queue):
        workload = await queue.at("claimed")
        old = await queue.token(workload)
        new = await queue.token(workload)
        body = {"workloadId": str(workload.id)}
        async with queue.client(old) as before, queue.client(new) as after:
            assert (await before.put("/running", json=body)).status_code == 401
            assert (await after.put("/running", json=body)).status_code == 204

    @pytest.mark.parametrize(
        "token",
        ["x", "w1.zz.x", f"w1.{UUID(int=9).hex}.x", "l1.e30.x", "l1.x", f"l1.{'e' * 8000}.x"],
    )
    async def test_an_invented_token_is_nobody_s(self, queue, token):
        async with queue.client(token) as client:
            answer = await client.put("/heartbeat", json={"workloadId": str(uuid4())})
        assert answer.status_code == 401

    async def test_an_expired_launcher_is_nobody(self, queue):
        token = LauncherTokens(queue.settings).make(
            name="D1", group="default", now=datetime.now(UTC) - minutes(6), lifetime=minutes(5)
        )
        async with queue.client(token) as client:
            answer = await client.post("/list", json={})
        assert (answer.status_code, answer.json()["code"]) == (401, "ExpiredAuthenticationToken")

    async def test_a_workload_is_no_launcher(self, queue):
        workload = await queue.at("running", Kind.HOST)
        body = {"workloadId": str(workload.id)}
        async with queue.client(await queue.token(workload)) as client:
            answers = [
                await client.put("/claim", json=body),
                await client.put("/launched", json=body),
                await client.put("/gone", json=body),
                await client.post("/list", json={}),
                await client.post("/queue/poll", json={"quantity": 1}),
                await client.post("/queue/clean", json={}),
                await client.get("/queue/stats"),
                await client.post("/create", json={"workloadId": str(uuid4())}),
            ]
            lie = await client.put("/failure", json=body | {"reason": "superseded"})
        assert {answer.status_code for answer in answers} == {403}
        assert lie.status_code == 400

    async def test_an_engine_creates_commands_of_its_own_account_only(self, queue):
        mine = await queue.at("running", account_uid=uuid4(), epoch=3)
        foreign = await queue.enqueue(Kind.COMMAND, account_uid=uuid4())
        async with queue.client(await queue.token(mine)) as client:
            stolen = await client.post("/create", json={"workloadId": str(foreign.id)})
            id = uuid4()
            await client.post("/create", json={"workloadId": str(id), "mutexKey": "k"})

        made = await queue.get(id)
        assert stolen.status_code == 403
        assert (made.account_uid, made.epoch, made.kind) == (mine.account_uid, 3, Kind.COMMAND)
        assert made.mutex_key == f"{mine.account_uid}/k"  # nobody reaches another account's key

    async def test_a_launcher_sees_its_group_only(self, queue):
        mine, other = await queue.enqueue(), await queue.enqueue(launch_group="other")
        async with queue.client() as client:
            listed = (await client.post("/list", json={"state": ["pending"]})).json()["workloads"]
            unseen = await client.get(f"/{other.id}")
        assert [w["id"] for w in listed] == [str(mine.id)]
        assert unseen.status_code == 404

    async def test_nothing_secret_is_shown(self, queue):
        workload = await queue.enqueue(
            sealed={"password": "v1.k.x.y"}, spec=Spec(settings={"a": 1})
        )
        token = await queue.token(workload)
        async with queue.client(token) as client:
            text = (await client.get(f"/{workload.id}")).text
        assert "sealed" not in text
        assert "digest" not in text
        assert token not in repr(await queue.get(workload))

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ("{", 400),
            ('{"workloadId": "x"}', 400),
            ("[]", 400),
            ('{"a": 1}', 400),
            ("x" * 2**21, 413),
        ],
    )
    async def test_nonsense_is_refused_in_words(self, queue, body, status):
        async with queue.client() as client:
            answer = await client.put("/cancel", content=body)
            other = await client.delete(f"/{uuid4()}")
        assert answer.status_code == status
        assert answer.json()["message"]
        assert other.status_code == 405
        assert BASE.startswith("/api")

    async def test_a_poll_over_http_is_a_poll(self, queue):
        made = await queue.enqueue(priority=Priority.HIGH)
        async with queue.client() as client:
            first = await client.post("/queue/poll", json={"quantity": 5, "priority": "high"})
            again = await client.post("/queue/poll", json={"quantity": 5, "priority": "high"})
        assert [w["id"] for w in first.json()["workloads"]] == [str(made.id)]
        assert again.json() == {"workloads": []}
