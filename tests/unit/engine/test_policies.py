"""The resource tree and round robin: nothing starts without its slots, nobody starves, nothing is lost."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.scheduling.policies import RoundRobin
from engine.scheduling.resource_tree import Queue
from engine.scheduling.resource_tree import Node, ResourceTree

H1, H2 = UUID(int=1), UUID(int=2)


def a_tree(slots: int = 100, hosts: int = 1, **servers: int | None) -> ResourceTree:
    tree = ResourceTree(slots)
    tree.set_hosts({UUID(int=n + 1): 100 for n in range(hosts)}, {})
    for name, number in servers.items():
        tree.limit(tree.server(name), number)
    return tree


def a_queue(
    policy: RoundRobin,
    tree: ResourceTree,
    job: str,
    server: str,
    database: str,
    tasks: int,
    *further: Node,
):
    queue = Queue(job, job, tree.path(server, None, database, *further))
    for number in range(tasks):
        policy.put(queue, number)
    return queue


def picked(policy: RoundRobin, most: int = 1000) -> list[tuple[str, str, int]]:
    found = []
    while len(found) < most and (one := policy.pick()) is not None:
        queue, ordinal = one
        found.append((queue.job, queue.path[2].name.rsplit("/", 1)[-1], ordinal))
    return found


def test_jobs_take_turns_however_many_tasks_each_has():
    tree = a_tree(6, s=None)
    policy = RoundRobin(tree)
    a_queue(policy, tree, "large", "s", "a", 1000)
    a_queue(policy, tree, "small", "s", "b", 2)

    jobs = [job for job, _, _ in picked(policy)]

    assert jobs == ["large", "small", "large", "small", "large", "large"]


def test_each_database_has_one_task_before_any_has_two():
    tree = a_tree(5, s=None)
    policy = RoundRobin(tree)
    for name in ("a", "b", "c"):
        a_queue(policy, tree, "job", "s", name, 10)

    assert [database for _, database, _ in picked(policy)] == ["a", "b", "c", "a", "b"]


def test_a_database_whose_task_finished_comes_first():
    tree = a_tree(2, s=None)
    policy = RoundRobin(tree)
    queues = [a_queue(policy, tree, "job", "s", name, 10) for name in ("a", "b", "c")]
    assert len(picked(policy)) == 2

    policy.release(queues[1], H1)

    assert picked(policy) == [("job", "b", 1)]


def test_a_full_server_stops_only_its_own_targets():
    tree = a_tree(100, s=2, t=3)
    policy = RoundRobin(tree)
    for server in ("s", "t"):
        for number in range(5):
            a_queue(policy, tree, "job", server, f"{server}{number}", 1)

    assert sorted(database[0] for _, database, _ in picked(policy)) == ["s", "s", "t", "t", "t"]
    assert picked(policy) == []


def test_a_waiting_queue_can_say_what_is_full():
    tree = a_tree(100, s=1)
    policy = RoundRobin(tree)
    a_queue(policy, tree, "job", "s", "a", 1)
    waiting = a_queue(policy, tree, "job", "s", "b", 1)
    picked(policy)

    full = policy.why(waiting)

    assert full is not None and (full.reason, full.used, full.slots) == ("ServerConnections", 1, 1)


def test_without_a_host_nothing_starts_and_everything_starts_when_one_comes():
    tree = ResourceTree(10)
    policy = RoundRobin(tree)
    queue = a_queue(policy, tree, "job", "s", "a", 2)
    assert picked(policy) == [] and policy.why(queue).reason == "NoHost"

    policy.wake(tree.set_hosts({H1: 5}, {}))

    assert len(picked(policy)) == 2


def test_servers_are_shared_out_over_hosts_and_move_when_theirs_goes():
    tree = a_tree(100, hosts=2)
    policy = RoundRobin(tree)
    queues = [a_queue(policy, tree, "job", name, "a", 4) for name in ("s", "t")]
    picked(policy, 2)
    owners = [tree.host_of(queue.path).id for queue in queues]
    assert set(owners) == {H1, H2}

    policy.wake(tree.set_hosts({owners[0]: 100}, {}))

    assert {tree.host_of(queue.path).id for queue in queues} == {owners[0]}


def test_a_paused_job_starts_nothing_until_it_goes_on():
    tree = a_tree()
    policy = RoundRobin(tree)
    a_queue(policy, tree, "paused", "s", "a", 1)
    a_queue(policy, tree, "other", "s", "b", 1)
    tree.pause_jobs({"paused"})
    assert [job for job, _, _ in picked(policy)] == ["other"]

    tree.pause_jobs(set())

    assert [job for job, _, _ in picked(policy)] == ["paused"]


def test_a_queue_that_was_dropped_leaves_its_place_to_others():
    tree = a_tree(100, s=1)
    policy = RoundRobin(tree)
    first = a_queue(policy, tree, "job", "s", "a", 1)
    gone, last = (a_queue(policy, tree, "job", "s", name, 1) for name in "bc")
    assert picked(policy) == [("job", "a", 0)]

    policy.drop([gone])
    policy.release(first, H1)

    assert picked(policy) == [("job", "c", 0)] and last.parked_at is None


@pytest.mark.parametrize("further", [True, False])
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_limits_hold_and_all_is_done(further: bool, seed: int):
    chance = random.Random(seed)
    tree = a_tree(chance.randint(1, 12), hosts=2)
    for name in "stu":
        tree.limit(tree.server(name), chance.choice([None, 1, 2, 5]))
    policy: RoundRobin[str] = RoundRobin(tree)
    own = Node("step", "MaxParallelism", chance.randint(1, 4))
    queues, left = [], 0
    for number in range(chance.randint(1, 12)):
        tasks = chance.randint(1, 5)
        more = (own,) if further and chance.random() < 0.5 else ()
        database = f"d{chance.randint(0, 3)}"
        queues.append(
            a_queue(policy, tree, f"job{number % 3}", chance.choice("stu"), database, tasks, *more)
        )
        left += tasks
    nodes = {node for queue in queues for node in queue.path}
    running: list[tuple[Queue[str], UUID]] = []
    for _ in range(10_000):
        while (found := policy.pick()) is not None:
            running.append((found[0], tree.host_of(found[0].path).id))
            left -= 1
        for node in nodes:
            assert node.used == sum(node in queue.path for queue, _ in running)
            assert node.slots is None or node.used <= node.slots
        if not running:
            break
        queue, host = running.pop(chance.randrange(len(running)))
        policy.release(queue, host)
    assert left == 0 and not any(node.used for node in nodes)
