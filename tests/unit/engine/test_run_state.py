"""The core's copy of live runs: who may follow whom, whose a place is when one is over, and who is late."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from engine.scheduling.run_state import RunState
from engine.scheduling.runs import (
    DEEPEST,
    StepDefinition,
    Run,
    RunningTask,
    StepRun,
    CompletionRow,
    WaitingTarget,
)

HOST = UUID(int=1)
NOW = 100.0
IN_PAIRS = 0.25  # seconds of a task of which one more may follow
FOUR = 0.125  # the same, four in one place
FAST = 0.001


def a_floor(slots: int = 2) -> RunState:
    floor = RunState(slots)
    floor.tree.see_hosts({HOST: 100}, {})
    floor.tree.limit(floor.tree.server("s"), None)
    return floor


def a_step(
    floor: RunState,
    targets: int,
    *,
    pace: float | None = IN_PAIRS,
    pool: str | None = None,
    parallelism: int | None = None,
    per_database: int | None = None,
) -> StepRun:
    """All on one database."""
    options = {"slotsPerDatabase": per_database}
    plan = StepDefinition(
        1, "step", uuid4(), "group", 60, max_parallelism=parallelism, options=options
    )
    run = Run(uuid4(), uuid4(), "job", 1, None, (plan,), {}, begun=True, canceled=False)
    floor.runs[run.id] = run
    step = run.step = StepRun(run, plan, planned=True, pace=pace)
    for ordinal in range(1, targets + 1):
        row = {"ordinal": ordinal, "attempts": 0, "not_before": None, "deadline": None}
        place = {"server_id": "s", "pool_name": pool, "database_name": "d"}
        floor.load(step, row | place | {"invocation_id": None})
    return step


def reserve(floor: RunState) -> list[RunningTask]:
    """As the controller does, first those that have room."""
    made = []
    while found := floor.pick():
        made.append(RunningTask(*found))
        take(floor, made[-1])
    for running in floor.follow(100):
        made.append(running)
        take(floor, running)
    return made


def take(floor: RunState, running: RunningTask) -> None:
    running.invocation, running.since = uuid4(), NOW
    floor.reserved(running)


def over(
    floor: RunState, running: RunningTask, *, after: float = 0.1, lifecycle: str = "Succeeded"
) -> None:
    floor.heard(CompletionRow(running.invocation, lifecycle, 1), NOW + after)


def ordinals(made: list[RunningTask]) -> list[tuple[int, int | None]]:
    """With that of each one's leader."""
    return [(one.target.ordinal, one.leader and one.leader.target.ordinal) for one in made]


def test_each_that_runs_is_followed_by_one_and_its_place_goes_on():
    floor = a_floor(slots=2)
    step = a_step(floor, 6)

    first = reserve(floor)
    assert ordinals(first) == [(1, None), (2, None), (3, 1), (4, 2)]
    over(floor, first[0])
    then = reserve(floor)

    assert ordinals(then) == [(5, 3)]
    assert floor.tree.instance.used == 2
    while floor.running:
        over(floor, next(iter(floor.running.values())))
        reserve(floor)
    assert step.over
    assert floor.tree.instance.used == 0


def test_nobody_follows_what_may_take_long_or_where_others_wait():
    floor = a_floor(slots=1)
    step = a_step(floor, 3, pace=None)

    [first] = reserve(floor)
    over(floor, first, after=0.6)
    [second] = reserve(floor)
    step.pace = FAST
    a_step(floor, 1)

    assert ordinals([first, second]) == [(1, None), (2, None)]
    assert reserve(floor) == [], "another job waits"


def test_who_waited_in_vain_waits_again_and_makes_its_step_a_slower_one():
    floor = a_floor(slots=1)
    step = a_step(floor, 2)
    leader, follower = reserve(floor)

    over(floor, follower, lifecycle="Created")

    assert (list(step.waiting), floor.tree.instance.used) == ([2], 1)
    assert reserve(floor) == []
    over(floor, leader)
    assert ordinals(reserve(floor)) == [(2, None)]


def test_a_limit_that_was_lowered_is_kept_before_anybody_follows():
    floor = a_floor(slots=2)
    a_step(floor, 9)
    first = reserve(floor)

    floor.tree.limit(floor.tree.instance, 1)
    over(floor, first[0])
    over(floor, first[1])

    assert ordinals(reserve(floor)) == [], "two are there, one may be"
    over(floor, first[2])
    assert ordinals(reserve(floor)) == [(5, 4)]
    assert floor.tree.instance.used == 1


def test_nobody_follows_in_a_job_that_is_paused():
    floor = a_floor(slots=1)
    step = a_step(floor, 2)
    leader = RunningTask(*floor.pick())
    take(floor, leader)

    floor.policy.close({step.run.job_id})

    assert reserve(floor) == []
    floor.policy.close(set())
    assert ordinals(reserve(floor)) == [(2, 1)]


def test_a_place_is_free_when_both_are_gone_in_whatever_order():
    for first in (0, 1):
        floor = a_floor(slots=1)
        step = a_step(floor, 2)
        both = reserve(floor)

        for number in (first, 1 - first):
            floor.ended(step, both[number].target.ordinal, both[number].invocation)

        assert (floor.tree.instance.used, step.over, floor.running) == (0, True, {})


def test_a_follower_of_a_lost_host_returns_without_a_place():
    floor = a_floor(slots=1)
    step = a_step(floor, 2)
    leader, follower = reserve(floor)

    floor.returned(follower.invocation)
    floor.rename(leader.invocation, new := uuid4())

    assert floor.tree.instance.used == 1
    assert list(step.waiting) == [2]
    over(floor, floor.running[new])
    assert ordinals(reserve(floor)) == [(2, None)]


@pytest.mark.parametrize(
    ("pace", "many"),
    [
        (None, 1),
        (0.0, DEEPEST),
        (FAST, DEEPEST),
        (0.05, 10),
        (FOUR, 4),
        (IN_PAIRS, 2),
        (0.3, 1),
        (0.5, 1),
        (9.0, 1),
    ],
)
def test_the_shorter_the_tasks_of_a_step_were_the_more_are_in_one_place(pace, many):
    floor = a_floor(slots=1)
    a_step(floor, 100, pace=pace)

    made = reserve(floor)

    assert ordinals(made) == [(1, None), *((n, n - 1) for n in range(2, many + 1))]
    assert floor.tree.instance.used == 1


def test_the_first_task_of_a_step_tells_its_pace_and_later_ones_change_it_by_and_by():
    floor = a_floor(slots=1)
    step = a_step(floor, 100, pace=None)
    [first] = reserve(floor)

    over(floor, first, after=0.01)
    told = step.pace
    then = reserve(floor)
    over(floor, then[0], after=0.2)

    assert told == pytest.approx(0.01)
    assert len(then) == DEEPEST
    assert 0.01 < step.pace < 0.05


@pytest.mark.parametrize(("after", "many"), [(FAST, 25), (9.0, 0)])
def test_one_that_was_slow_keeps_others_from_following(after, many):
    floor = a_floor(slots=1)
    step = a_step(floor, 100, pace=FAST)
    first, *rest = reserve(floor)
    for running in rest[7:]:
        floor.ended(step, running.target.ordinal, running.invocation)

    over(floor, first, after=after)

    assert floor.tree.instance.used == 1
    assert len(reserve(floor)) == many


def test_one_that_took_very_long_says_no_more_than_one_that_took_long():
    paces = []
    for after in (1.0, 3_600.0):
        floor = a_floor(slots=1)
        step = a_step(floor, 1, pace=FAST)
        over(floor, reserve(floor)[0], after=after)
        paces.append(step.pace)

    assert paces[0] == pytest.approx(paces[1])
    assert paces[0] > FAST


def test_one_that_follows_has_its_time_from_when_its_place_became_its_own():
    floor = a_floor(slots=1)
    step = a_step(floor, 2, pace=IN_PAIRS)
    leader, follower = reserve(floor)

    over(floor, leader, after=IN_PAIRS)
    over(floor, follower, after=2 * IN_PAIRS)

    assert step.pace == pytest.approx(IN_PAIRS)


def test_places_of_one_database_share_what_waits_there():
    floor = a_floor(slots=2)
    a_step(floor, 10, pace=FAST)

    made = reserve(floor)

    first, second = made[0].place, made[1].place
    assert first.many == 5, "its half of the eight that wait"
    assert second.many > 1, "the other one has some of the rest"
    made += reserve(floor)
    assert len(made) == 10
    assert {running.place for running in made} == {first, second}
    assert floor.tree.instance.used == 2


def test_no_more_follow_than_can_be_handed_over_at_once():
    floor = a_floor(slots=2)
    a_step(floor, 100, pace=FAST)
    for _ in range(2):
        take(floor, RunningTask(*floor.pick()))

    made = list(floor.follow(20))

    assert len(made) == 20


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("who", ["database", "pool", "parallelism", "per_database"])
def test_where_somebody_limited_how_many_are_at_work_one_follows_each(who, slots):
    floor = a_floor(slots=9)
    match who:
        case "database":
            a_step(floor, 100, pace=FAST)
            floor.tree.limit(floor.tree.server("s").databases["d"], slots)
        case "pool":
            floor.tree.limit(floor.tree.pool("s", "p"), slots)
            a_step(floor, 100, pace=FAST, pool="p")
        case name:
            a_step(floor, 100, pace=FAST, **{name: slots})

    made = reserve(floor) + reserve(floor)

    assert [leader is None for _, leader in ordinals(made)] == [True] * slots + [False] * slots
    assert {running.place.many for running in made} == {2}


def test_the_limit_of_a_server_does_not_keep_many_from_one_place():
    floor = a_floor(slots=9)
    floor.tree.limit(floor.tree.server("s"), 1)
    a_step(floor, 100, pace=FAST)

    assert len(reserve(floor)) == DEEPEST


def test_a_place_is_filled_up_when_half_of_those_in_it_are_gone():
    floor = a_floor(slots=1)
    a_step(floor, 100, pace=FOUR)
    first = reserve(floor)

    over(floor, first[0], after=FOUR)
    then = reserve(floor)
    over(floor, first[1], after=2 * FOUR)

    assert (ordinals(first)[-1], then) == ((4, 3), [])
    assert ordinals(reserve(floor)) == [(5, 4), (6, 5)]
    assert first[0].place.many == 4


def test_who_stands_in_the_middle_leaves_and_the_others_close_up():
    floor = a_floor(slots=1)
    step = a_step(floor, 4, pace=FOUR)
    one, two, three, four = reserve(floor)
    assert reserve(floor) == [], "nobody waits"

    floor.ended(step, two.target.ordinal, two.invocation)
    assert (one.follower, three.leader, three.follower, four.leader) == (three, one, four, three)
    floor.returned(three.invocation)
    assert (one.follower, four.leader, one.place.last) == (four, one, four)
    over(floor, one, after=FOUR)

    assert (four.leader, four.since, floor.tree.instance.used) == (None, NOW + FOUR, 1)
    assert ordinals(reserve(floor)) == [(3, 4)]


def test_who_comes_next_follows_the_last_that_is_left():
    floor = a_floor(slots=1)
    step = a_step(floor, 6, pace=FOUR)
    one, two, three, four = reserve(floor)

    for running in (four, three):
        floor.ended(step, running.target.ordinal, running.invocation)

    assert ordinals(reserve(floor)) == [(5, 2), (6, 5)]
    assert (one.follower, two.follower.target.ordinal) == (two, 5)


def test_the_slots_of_the_first_are_those_of_each_that_follows_until_the_last_is_over():
    floor = a_floor(slots=1)
    step = a_step(floor, DEEPEST, pace=FAST)
    made = reserve(floor)

    used = []
    for number, running in enumerate(made, 1):
        over(floor, running, after=FAST * number)
        used.append((floor.tree.instance.used, floor.tree.server("s").used))

    assert used == [(1, 1)] * (DEEPEST - 1) + [(0, 0)]
    assert step.over


def test_nobody_follows_in_a_step_that_is_cancelled():
    floor = a_floor(slots=1)
    step = a_step(floor, 100, pace=FOUR)
    first = reserve(floor)

    step.canceled = True
    for number, running in enumerate(first[:3], 1):
        over(floor, running, after=FOUR * number)

    assert reserve(floor) == []


def a_retry(
    floor: RunState, step: StepRun, ordinal: int = 1, *, due: float | None = None, deadline: float
) -> WaitingTarget:
    """Of a target that was tried before, on another database than the rest."""
    row = {"ordinal": ordinal, "attempts": 1, "not_before": at(due), "deadline": at(deadline)}
    place = {"server_id": "s", "pool_name": None, "database_name": "e", "invocation_id": None}
    floor.load(step, row | place)
    return step.waiting[ordinal]


def at(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)


def test_a_retry_that_waits_for_a_slot_is_late_at_its_deadline_and_not_before():
    floor = a_floor(slots=1)
    a_step(floor, 1, pace=None)
    reserve(floor)  # the only slot is another run's
    step = a_step(floor, 0)
    target = a_retry(floor, step, due=101.0, deadline=160.0)

    early = [floor.due(moment) for moment in (101.0, 102.0, 159.0)]
    waited = floor.next_due
    late = floor.due(160.0)

    assert (early, waited, late) == ([[], [], []], 160.0, [(step, target)])
    assert not target.queue.items, "nobody may pick it any more"
    floor.timed_out(step, 1)
    assert (step.over, floor.next_due) == (True, None)


def test_a_target_that_never_began_is_never_late():
    floor = a_floor(slots=1)
    step = a_step(floor, 2, pace=None)
    [running] = reserve(floor)

    floor.returned(running.invocation)
    [again] = reserve(floor)
    over(floor, again, lifecycle="Created")

    assert (floor.next_due, floor.due(10_000.0)) == (None, [])
    assert sorted(step.waiting) == [1, 2]


def test_what_was_tried_has_the_deadline_that_the_database_tells():
    floor = a_floor(slots=1)
    step = a_step(floor, 1, pace=None)
    [running] = reserve(floor)

    floor.heard(CompletionRow(running.invocation, "Created", 0, not_before=102.0, until=150.0), NOW)
    floor.policy.close({step.run.job_id})

    assert (floor.next_due, floor.due(102.0), floor.next_due) == (102.0, [], 150.0)
    assert floor.due(150.0) == [(step, step.waiting[1])]


def test_a_target_is_late_once_although_several_timers_are_due():
    floor = a_floor()
    step = a_step(floor, 0)
    a_retry(floor, step, deadline=160.0)
    [running] = reserve(floor)

    floor.heard(CompletionRow(running.invocation, "WaitingForRetry", 2, 155.0, until=160.0), NOW)

    assert floor.due(170.0) == [(step, step.waiting[1])]


def test_one_that_the_database_gives_more_time_is_asked_about_again_later():
    floor = a_floor(slots=1)
    step = a_step(floor, 0)
    target = a_retry(floor, step, deadline=160.0)
    [late] = floor.due(160.0)

    floor.spare(*late, until=161.0)

    assert (list(target.queue.items), floor.next_due) == ([1], 161.0)
    assert (floor.due(160.5), floor.due(161.0)) == ([], [(step, target)])


def test_a_target_has_one_timer_for_its_deadline_however_often_it_is_tried():
    floor = a_floor(slots=1)
    step = a_step(floor, 0)
    target = a_retry(floor, step, deadline=1_000.0)

    for number in range(1, 20):
        [running] = reserve(floor)
        told = CompletionRow(
            running.invocation, "WaitingForRetry", number, NOW + number, until=1_000.0
        )
        floor.heard(told, NOW)
        floor.due(NOW + number)

    assert (len(floor._timers), list(target.queue.items)) == (1, [1])


def test_timers_of_what_no_longer_waits_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("engine.scheduling.timers.LEAST", 10)
    floor = a_floor(slots=1)
    step = a_step(floor, 0)

    for ordinal in range(1, 200):
        a_retry(floor, step, ordinal, deadline=1_000.0)
        [running] = reserve(floor)
        floor.ended(step, ordinal, running.invocation)

    assert len(floor._timers) < 30


def test_a_run_that_is_over_leaves_no_timers(monkeypatch):
    monkeypatch.setattr("engine.scheduling.timers.LEAST", 0)
    floor = a_floor(slots=1)
    step, other = a_step(floor, 0), a_step(floor, 0)
    for ordinal in range(1, 9):
        a_retry(floor, step, ordinal, deadline=1_000.0)
    a_retry(floor, other, deadline=2_000.0)

    floor.all_ended(step)
    floor.forget(step.run)

    assert (len(floor._timers), floor.next_due) == (1, 2_000.0)


def test_riders_that_are_heard_together_share_their_time():
    floor = a_floor(slots=1)
    step = a_step(floor, 9, pace=0.0)
    riders = reserve(floor)

    for rider in riders[:8]:
        over(floor, rider, after=0.8)

    assert len(riders) == 9
    assert step.pace == pytest.approx(0.1 * (1 - 0.9**8))


def test_those_that_follow_have_no_slots_of_their_host():
    floor = a_floor(slots=2)
    a_step(floor, 9, pace=0.0)
    reserve(floor)

    assert len(floor.running) == 9
    assert floor.used_slots() == {HOST: 2}
