"""What a host has in hand: nobody who waits for another is forgotten, whoever leaves in between."""

import pytest

from engine.host.task_registry import TaskRegistry
from engine.model.task import Task
from tests.support.attempts import a_task


def a_line(many: int) -> tuple[TaskRegistry, list[Task]]:
    """Each behind the one before."""
    hand, tasks = TaskRegistry(), [a_task(ordinal=number) for number in range(1, many + 1)]
    leader = None
    for task in tasks:
        assert hand.take(task, leader) is (leader is not None)
        leader = task.invocation_id
    return hand, tasks


def all_of(hand: TaskRegistry, task: Task, most: int = 99) -> list[Task]:
    return hand.gather(task, most, lambda _: True)


def test_those_that_follow_each_other_are_gathered_in_their_order():
    hand, tasks = a_line(5)

    assert all_of(hand, tasks[0], most=3) == tasks[:3]
    assert hand.lay_down(tasks[:3]) == [tasks[3]]
    assert all_of(hand, tasks[3]) == tasks[3:]
    assert hand.lay_down(tasks[3:]) == []


def test_one_that_does_not_go_along_begins_when_those_before_it_are_over():
    hand, tasks = a_line(4)

    assert hand.gather(tasks[0], 99, lambda task: task.ordinal != 3) == tasks[:2]
    assert hand.lay_down(tasks[:2]) == [tasks[2]]


def test_one_that_shall_stop_is_not_gathered():
    hand, tasks = a_line(3)
    hand.cancel(tasks[1].invocation_id)

    assert all_of(hand, tasks[0]) == tasks[:1]
    assert hand.lay_down(tasks[:1]) == [tasks[1]]
    assert not hand.is_wanted(tasks[1])


def test_whoever_comes_behind_one_in_the_middle_begins_too():
    """The core has forgotten those behind it, which were cancelled, and the host has not."""
    hand, tasks = a_line(4)
    gathered = all_of(hand, tasks[0])
    late = a_task(ordinal=9)

    assert hand.take(late, tasks[2].invocation_id)
    assert hand.lay_down(gathered) == [late]


def test_whoever_comes_behind_one_that_has_a_follower_stands_behind_that():
    hand, tasks = a_line(2)
    late = a_task(ordinal=9)

    assert hand.take(late, tasks[0].invocation_id)
    assert all_of(hand, tasks[0]) == [*tasks, late]


@pytest.mark.parametrize("who", [1, 2, 3])
def test_when_one_has_waited_in_vain_those_behind_it_move_up(who):
    hand, tasks = a_line(4)

    assert hand.unfollow(tasks[who])
    assert not hand.unfollow(tasks[who]), "it is gone"
    left = [task for task in tasks if task is not tasks[who]]
    assert all_of(hand, tasks[0]) == left


def test_one_that_was_gathered_does_not_lose_patience():
    hand, tasks = a_line(2)
    all_of(hand, tasks[0])

    assert not hand.unfollow(tasks[1])
    assert hand.begin(tasks[1])


def test_what_was_dropped_does_not_begin():
    hand, tasks = a_line(3)

    assert hand.begin(tasks[0])
    assert hand.drop() == tasks[1:]
    assert not hand.begin(tasks[1])
    assert [hand.give_up(task) for task in tasks] == [True, False, False]
