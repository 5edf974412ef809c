"""The tasks that a host holds: none that is queued in a slot is forgotten, whichever leaves the slot."""

import pytest

from engine.host.task_registry import TaskRegistry
from engine.model.task import Task
from tests.support.attempts import a_task


def a_slot(many: int) -> tuple[TaskRegistry, list[Task]]:
    """One slot: the first task runs, the others are prefetched."""
    registry, tasks = TaskRegistry(), [a_task(ordinal=number) for number in range(1, many + 1)]
    for task in tasks:
        first = task is tasks[0]
        assert registry.add(task, None if first else tasks[0].invocation_id) is not first
    return registry, tasks


def all_of(registry: TaskRegistry, task: Task, most: int = 99) -> list[Task]:
    return registry.pop_batch(task, most, lambda _: True)


def test_a_batch_has_the_tasks_of_a_slot_in_their_order():
    registry, tasks = a_slot(5)

    assert all_of(registry, tasks[0], most=3) == tasks[:3]
    assert registry.finish(tasks[:3]) == [tasks[3]]
    assert all_of(registry, tasks[3]) == tasks[3:]
    assert registry.finish(tasks[3:]) == []
    assert not registry


def test_a_task_that_does_not_fit_begins_when_the_batch_before_it_has_finished():
    registry, tasks = a_slot(4)

    assert registry.pop_batch(tasks[0], 99, lambda task: task.ordinal != 3) == tasks[:2]
    assert registry.finish(tasks[:2]) == [tasks[2]]


def test_a_cancelled_task_is_not_batched():
    registry, tasks = a_slot(3)
    registry.cancel(tasks[1].invocation_id)

    assert all_of(registry, tasks[0]) == tasks[:1]
    assert registry.finish(tasks[:1]) == [tasks[1]]
    assert not registry.is_wanted(tasks[1])


def test_a_task_that_arrives_while_a_batch_of_its_slot_runs_begins_after_it():
    registry, tasks = a_slot(4)
    batch = all_of(registry, tasks[0])
    late = a_task(ordinal=9)

    assert registry.add(late, tasks[0].invocation_id)
    assert registry.finish(batch) == [late]


def test_a_task_for_a_slot_that_is_free_again_begins_at_once():
    registry, tasks = a_slot(2)
    registry.finish(all_of(registry, tasks[0]))

    assert not registry.add(a_task(ordinal=9), tasks[0].invocation_id)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_prefetched_task_that_is_detached_leaves_no_gap(place):
    registry, tasks = a_slot(4)

    assert registry.detach(tasks[place])
    assert not registry.detach(tasks[place]), "it is gone"
    left = [task for task in tasks if task is not tasks[place]]
    assert all_of(registry, tasks[0]) == left


def test_neither_the_first_task_of_a_slot_nor_one_of_a_batch_is_detached():
    registry, tasks = a_slot(2)
    all_of(registry, tasks[0])

    assert [registry.detach(task) for task in tasks] == [False, False]
    assert registry.mark_started(tasks[1])


def test_a_released_task_does_not_start():
    registry, tasks = a_slot(3)

    assert registry.mark_started(tasks[0])
    assert registry.release_unstarted() == tasks[1:]
    assert not registry.mark_started(tasks[1])
    assert [registry.give_up(task) for task in tasks] == [True, False, False]
