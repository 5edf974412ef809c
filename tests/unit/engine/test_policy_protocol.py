"""What every scheduling policy must do, and that parking and waking need nothing of a policy's own."""

import random
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.scheduling.policies import Policy, RoundRobin
from engine.scheduling.resource_tree import Node, Queue, ResourceTree
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run, StepDefinition, StepPhase, StepRun

HOST = UUID(int=1)


class NewestFirst(Policy[str]):
    """The shortest policy that keeps to the protocol: the queue that was added last is picked first."""

    def __init__(self, tree: ResourceTree) -> None:
        self._tree = tree
        self._queues: dict[Queue, None] = {}

    def put(self, queue, ordinal, *, first=False):
        queue.items.append(ordinal)
        if queue.parked_at is None:
            self._queues[queue] = None

    def pick(self):
        for queue in reversed(list(self._queues)):
            if self._tree.is_paused(queue.job):
                continue
            if queue.items and self._tree.take(queue):
                return queue, queue.items.popleft()
            del self._queues[queue]
            self.wake(self._tree.pass_on(queue))
        return self.pick() if self._could_start() else None

    def _could_start(self):
        return any(
            queue.items and not self._tree.is_paused(queue.job) and not self._tree.blocker(queue)
            for queue in self._queues
        )

    def release(self, queue, host):
        self.wake(self._tree.release(queue, host))
        self.wake([queue] if queue.items and queue.parked_at is None else [])

    def wake(self, queues):
        for queue in queues:
            self._queues[queue] = None

    def drop(self, queues):
        for queue in queues:
            queue.items.clear()
            self._tree.unpark(queue)
            self._queues.pop(queue, None)

    def why(self, queue):
        return self._tree.blocker(queue)


POLICIES = (RoundRobin, NewestFirst)
each_policy = pytest.mark.parametrize("make", POLICIES)


def a_tree(slots: int = 100, **servers: int | None) -> ResourceTree:
    tree = ResourceTree(slots)
    tree.set_hosts({HOST: 100}, {})
    for name, number in servers.items():
        tree.limit(tree.server(name), number)
    return tree


def a_queue(policy, tree, job, server, database, tasks, *further) -> Queue:
    queue = Queue(job, job, tree.path(server, None, database, *further))
    for ordinal in range(tasks):
        policy.put(queue, ordinal)
    return queue


def pick_all(policy) -> list[tuple[Queue, int]]:
    return list(iter(policy.pick, None))


@each_policy
def test_a_picked_task_holds_its_slots_until_it_is_released(make):
    tree = a_tree(s=1)
    policy = make(tree)
    queue = a_queue(policy, tree, "job", "s", "a", 2)
    assert pick_all(policy) == [(queue, 0)]

    policy.release(queue, HOST)

    assert pick_all(policy) == [(queue, 1)]
    assert tree.server("s").used == 1


@each_policy
def test_why_names_the_full_node_and_nothing_for_a_queue_that_could_start(make):
    tree = a_tree(s=1, t=1)
    policy = make(tree)
    a_queue(policy, tree, "job", "s", "a", 2)
    pick_all(policy)
    waiting = a_queue(policy, tree, "job", "s", "b", 1)
    ready = a_queue(policy, tree, "job", "t", "a", 1)

    assert policy.why(waiting) is tree.server("s")
    assert policy.why(ready) is None


@each_policy
def test_queues_woken_by_a_raised_limit_are_picked(make):
    tree = a_tree(s=0)
    policy = make(tree)
    queue = a_queue(policy, tree, "job", "s", "a", 2)
    assert pick_all(policy) == []

    policy.wake(tree.limit(tree.server("s"), 5))

    assert pick_all(policy) == [(queue, 0), (queue, 1)]


@each_policy
def test_a_dropped_queue_starts_nothing_parked_or_not(make):
    tree = a_tree(s=0)
    policy = make(tree)
    parked = a_queue(policy, tree, "job", "s", "a", 1)
    ready = a_queue(policy, tree, "job", "t", "a", 1)
    tree.take(parked)

    policy.drop([parked, ready])

    assert tree.limit(tree.server("s"), 5) == []
    assert pick_all(policy) == []


@each_policy
def test_a_paused_job_starts_nothing_and_keeps_its_tasks(make):
    tree = a_tree()
    policy = make(tree)
    queue = a_queue(policy, tree, "job", "s", "a", 1)
    tree.pause_jobs({"job"})
    assert pick_all(policy) == []

    tree.pause_jobs(set())

    assert pick_all(policy) == [(queue, 0)]


@each_policy
@given(seed=st.integers(0, 2**32))
def test_limits_hold_and_every_task_starts_once(make, seed):
    chance = random.Random(seed)
    tree = a_tree(chance.randint(1, 8))
    for name in "st":
        tree.limit(tree.server(name), chance.choice([None, 1, 3]))
    policy = make(tree)
    own = Node("step", "MaxParallelism", chance.randint(1, 3))
    waiting = set()
    for number in range(chance.randint(1, 8)):
        path = chance.choice("st"), f"d{chance.randint(0, 2)}"
        further = (own,) if chance.random() < 0.5 else ()
        queue = a_queue(
            policy, tree, f"job{number % 3}", *path, tasks := chance.randint(1, 4), *further
        )
        waiting |= {(queue, ordinal) for ordinal in range(tasks)}
    nodes = {node for queue, _ in waiting for node in queue.path}
    running = []
    while waiting or running:
        for task in pick_all(policy):
            waiting.remove(task)
            running.append(task)
        assert running, "tasks wait although nothing holds a slot"
        assert all(node.room >= 0 for node in nodes)
        queue, _ = running.pop(chance.randrange(len(running)))
        policy.release(queue, HOST)
    assert not any(node.used for node in nodes)


@each_policy
def test_the_run_state_works_with_any_policy(make):
    state = RunState(2, make)
    state.tree.set_hosts({HOST: 10}, {})
    plan = StepDefinition(1, "step", uuid4(), "group", 60)
    run = Run(uuid4(), uuid4(), "job", 1, None, (plan,), {}, begun=True, canceled=False)
    step = StepRun(run, plan, phase=StepPhase.QUEUED)
    run.live.append(step)
    place = {"server_id": "s", "pool_name": None, "database_name": "a", "invocation_id": None}
    times = {"attempts": 0, "not_before": None, "deadline": None}
    for ordinal in (1, 2, 3):
        state.load(step, {"ordinal": ordinal, **place, **times})

    picked = list(iter(state.pick, None))

    assert [(target.ordinal, host) for _, target, host in picked] == [(1, HOST), (2, HOST)]
    assert (step.busy, list(step.waiting)) == (2, [3])


def test_the_tree_parks_a_queue_at_the_full_node_and_forgets_it_when_it_wakes():
    tree = a_tree(s=0)
    queue = Queue("job", "job", tree.path("s", None, "a"))
    assert not tree.take(queue)
    assert queue.parked_at is tree.server("s")

    assert tree.limit(tree.server("s"), 1) == [queue]

    assert queue.parked_at is None
    assert tree.take(queue)


def test_queues_parked_at_a_host_that_goes_are_woken():
    tree = ResourceTree(100)
    tree.set_hosts({HOST: 0}, {})
    queue = Queue("job", "job", tree.path("s", None, "a"))
    assert not tree.take(queue)

    assert tree.set_hosts({UUID(int=2): 5}, {}) == [queue]

    assert queue.parked_at is None


def test_a_queue_that_is_parked_elsewhere_passes_its_room_on():
    tree = a_tree(s=1, t=0)
    own = Node("step", "MaxParallelism", 1)
    first, second = (Queue(name, name, tree.path(name, None, "a", own)) for name in "st")
    own.slots = 0
    assert not tree.take(first)
    own.slots = 1
    assert not tree.take(second)

    assert tree.pass_on(second) == [first]
