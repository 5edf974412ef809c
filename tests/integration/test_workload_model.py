"""Whatever is asked of the queue in whatever order, the rows agree with a small model of the contract."""

import asyncio
import pytest

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from hypothesis import HealthCheck, settings as hypothesis_settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test

from fsm.launch import claims
from fsm.launch.protocol import Kind, Priority, Reason
from fsm.launch.workload import Over
from muster.core.db import open_database
from tests.support.launching import QueueFixture, minutes, original

pytestmark = pytest.mark.newest

ACTIVE = ("pending", "claimed", "launched", "running")
ALLOWED = {
    "launched": {"claimed", "launched", "running"},
    "running": {"claimed", "launched", "running"},
    "heartbeat": {"running"},
    "success": {*ACTIVE, "success"},
    "failure": {*ACTIVE, "failure"},
    "cancelled": {*ACTIVE, "cancelled"},
}
LIMIT = {"claimed": 30, "launched": 10, "running": 10}
CAP, PARALLELISM = 1, 2
LAUNCHERS = ("D1", "D2")


@dataclass
class Model:
    state: str
    kind: Kind
    key: str | None
    priority: Priority
    owner: str | None = None
    deadline: float = 0  # minutes; a pending one has none, since launchers live
    old_at: float = 1e9
    gone: bool = False
    ended_at: float = 0

    @property
    def over(self) -> bool:
        return self.state not in ACTIVE


class QueueMachine(RuleBasedStateMachine):
    def __init__(self, settings) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        chosen = replace(
            original(settings), launcher_parallelism=PARALLELISM, max_running_engine=CAP
        )
        self.db = self.run(open_database(chosen))
        self.queue = QueueFixture(self.db, chosen)
        self.model: dict[UUID, Model] = {}
        self.now = 0.0

    def run(self, work):
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.db.close())
        self.runner.close()

    @initialize()
    def empty(self) -> None:
        self.run(self.db.execute("truncate workload, launcher, watch"))
        for name in LAUNCHERS:
            self.run(self.queue.launcher(name))

    def pick(self, data):
        return list(self.model)[data.draw(st.integers(0, len(self.model) - 1))]

    @rule(
        kind=st.sampled_from(Kind),
        key=st.sampled_from([None, "a", "b"]),
        priority=st.sampled_from(Priority),
        account=st.sampled_from([None, UUID(int=1), UUID(int=2)]),
    )
    def enqueue(self, kind, key, priority, account) -> None:
        made = self.run(
            self.queue.enqueue(kind, mutex_key=key, priority=priority, account_uid=account)
        )
        for other in self.model.values():
            if key and other.key == key and not other.over:
                self.end(other, "failure")
        self.model[made.id] = Model("pending", kind, key, priority)

    @rule(name=st.sampled_from(LAUNCHERS), priority=st.sampled_from(Priority))
    def take(self, name, priority) -> None:
        taken = self.run(self.queue.take(name, priority))
        if taken is None:
            assert not [m for m in self.model.values() if self.eligible(m, name, priority)]
            return
        model = self.model[taken.id]
        assert self.eligible(model, name, priority)
        self.move(model, "claimed")
        model.owner = name

    def eligible(self, model: Model, name: str, priority: Priority) -> bool:
        engines = sum(m.kind == Kind.ENGINE and m.state in LIMIT for m in self.model.values())
        starting = sum(
            m.owner == name and m.priority == priority and m.state in ("claimed", "launched")
            for m in self.model.values()
        )
        ending = any(
            m.over and not m.gone and m.key and m.key == model.key and self.now - m.ended_at < 0.75
            for m in self.model.values()
        )
        capped = model.kind == Kind.ENGINE and engines >= CAP
        mine = model.state == "pending" and model.priority == priority
        return mine and starting < PARALLELISM and not ending and not capped

    @precondition(lambda self: self.model)
    @rule(data=st.data(), move=st.sampled_from(sorted(ALLOWED)))
    def ask(self, data, move) -> None:
        id = self.pick(data)
        model = self.model[id]
        row = self.run(self.queue.get(id))
        arguments = {"success": [{"ok": 1}]}.get(move, [])
        named = {"source": "test"} if move in {"success", "failure", "cancelled"} else {}
        if move in {"failure", "cancelled"}:
            named["reason"] = Reason.REQUESTED
        try:
            self.run(self.queue.do(move, row, *arguments, **named))
        except Over:
            assert model.state not in ALLOWED[move]
            assert self.run(self.queue.get(id)) == row  # a refusal changes nothing
            return
        assert model.state in ALLOWED[move]
        if move in {"success", "failure", "cancelled"}:
            if not model.over:
                self.end(model, move)
        elif move == "heartbeat" or model.state != "running" or move == "running":
            if move == "running" and model.state != "running" and model.kind == Kind.COMMAND:
                model.old_at = self.now + 240
            self.move(model, "running" if move == "heartbeat" else move)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), name=st.sampled_from(LAUNCHERS))
    def see_it_gone(self, data, name) -> None:
        id = self.pick(data)
        model = self.model[id]
        row = self.run(self.queue.get(id))
        try:
            self.run(self.queue.do("gone", row, name, 1))
        except Over:
            assert model.owner != name
            return
        assert model.owner == name
        if not model.over:
            self.end(model, "failure")
        model.gone = True

    # No multiple of 7 comes near a limit, so that the time the test itself takes does not matter.
    @rule(delay=st.sampled_from([7, 14, 21, 70]))
    def time_passes(self, delay) -> None:
        self.run(self.queue.later(minutes(delay)))
        self.now += delay
        self.run(self.queue.sweep())
        for model in self.model.values():
            late = model.state in LIMIT and model.deadline < self.now
            if late or (model.state == "running" and model.old_at < self.now):
                self.end(model, "failure")

    def move(self, model: Model, to: str) -> None:
        model.state = to
        model.deadline = self.now + LIMIT[to]

    def end(self, model: Model, to: str) -> None:
        model.gone = model.state == "pending"
        model.state, model.ended_at = to, self.now

    @invariant()
    def rows_and_model_agree(self) -> None:
        rows = self.run(self.db.fetch("select id, state, gone_at, claimed_by from workload"))
        assert {r["id"]: r["state"] for r in rows} == {i: m.state for i, m in self.model.items()}
        assert {r["id"]: r["gone_at"] is not None for r in rows} == {
            i: m.gone for i, m in self.model.items()
        }

    @invariant()
    def each_end_is_told_once(self) -> None:
        told = Counter(w.id for w in self.queue.ended)
        assert set(told.values()) <= {1}
        assert set(told) == {id for id, model in self.model.items() if model.over}


def test_the_queue_keeps_its_contract_in_any_order(settings):
    run_state_machine_as_test(
        lambda: QueueMachine(settings),
        settings=hypothesis_settings(
            max_examples=12, stateful_step_count=30, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


async def test_a_sweep_and_the_queue_agree_on_time(db, settings):
    queue = QueueFixture(db, original(settings))
    workload = await queue.at("running")

    await queue.later(minutes(10) - timedelta(seconds=5))

    assert await queue.sweep() == 0
    assert (await claims.mine(db, "D1"))[0].id == workload.id
