"""The core's copy of live runs: who may follow whom, whose a place is when one is over, and who is late."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from engine.floor import Floor, Plan, Run, Running, StepRun, Told, Waiting

HOST = UUID(int=1)
NOW = 100.0


def a_floor(slots: int = 2) -> Floor:
    floor = Floor(slots)
    floor.tree.see_hosts({HOST: 100}, {})
    floor.tree.limit(floor.tree.server("s"), None)
    return floor


def a_step(floor: Floor, targets: int, *, brisk: bool = True) -> StepRun:
    """All on one database."""
    plan = Plan(1, "step", uuid4(), "group", 60)
    run = Run(uuid4(), uuid4(), "job", 1, None, (plan,), {}, begun=True, canceled=False)
    floor.runs[run.id] = run
    step = run.step = StepRun(run, plan, planned=True, brisk=brisk)
    for ordinal in range(1, targets + 1):
        row = {"ordinal": ordinal, "attempts": 0, "not_before": None, "deadline": None}
        place = {"server_id": "s", "pool_name": None, "database_name": "d"}
        floor.load(step, row | place | {"invocation_id": None})
    return step


def reserve(floor: Floor) -> list[Running]:
    """As the controller does, first those that have room."""
    made = []
    while found := floor.pick():
        made.append(Running(*found))
        take(floor, made[-1])
    for running in floor.follow(100):
        made.append(running)
        take(floor, running)
    return made


def take(floor: Floor, running: Running) -> None:
    running.invocation, running.since = uuid4(), NOW
    floor.reserved(running)


def over(
    floor: Floor, running: Running, *, after: float = 0.1, lifecycle: str = "Succeeded"
) -> None:
    floor.heard(Told(running.invocation, lifecycle, 1), NOW + after)


def ordinals(made: list[Running]) -> list[tuple[int, int | None]]:
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
    step = a_step(floor, 3, brisk=False)

    [first] = reserve(floor)
    over(floor, first, after=0.6)
    [second] = reserve(floor)
    assert not step.brisk
    step.brisk = True
    a_step(floor, 1)

    assert ordinals([first, second]) == [(1, None), (2, None)]
    assert reserve(floor) == [], "another job waits"


def test_who_waited_in_vain_waits_again_and_nobody_follows_in_its_stead():
    floor = a_floor(slots=1)
    step = a_step(floor, 2)
    leader, follower = reserve(floor)

    over(floor, follower, lifecycle="Created")

    assert (step.brisk, list(step.waiting), floor.tree.instance.used) == (False, [2], 1)
    step.brisk = True
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
    leader = Running(*floor.pick())
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


def a_retry(
    floor: Floor, step: StepRun, ordinal: int = 1, *, due: float | None = None, deadline: float
) -> Waiting:
    """Of a target that was tried before, on another database than the rest."""
    row = {"ordinal": ordinal, "attempts": 1, "not_before": at(due), "deadline": at(deadline)}
    place = {"server_id": "s", "pool_name": None, "database_name": "e", "invocation_id": None}
    floor.load(step, row | place)
    return step.waiting[ordinal]


def at(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)


def test_a_retry_that_waits_for_a_slot_is_late_at_its_deadline_and_not_before():
    floor = a_floor(slots=1)
    a_step(floor, 1, brisk=False)
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
    step = a_step(floor, 2, brisk=False)
    [running] = reserve(floor)

    floor.returned(running.invocation)
    [again] = reserve(floor)
    over(floor, again, lifecycle="Created")

    assert (floor.next_due, floor.due(10_000.0)) == (None, [])
    assert sorted(step.waiting) == [1, 2]


def test_what_was_tried_has_the_deadline_that_the_database_tells():
    floor = a_floor(slots=1)
    step = a_step(floor, 1, brisk=False)
    [running] = reserve(floor)

    floor.heard(Told(running.invocation, "Created", 0, not_before=102.0, until=150.0), NOW)
    floor.policy.close({step.run.job_id})

    assert (floor.next_due, floor.due(102.0), floor.next_due) == (102.0, [], 150.0)
    assert floor.due(150.0) == [(step, step.waiting[1])]


def test_a_target_is_late_once_although_several_timers_are_due():
    floor = a_floor()
    step = a_step(floor, 0)
    a_retry(floor, step, deadline=160.0)
    [running] = reserve(floor)

    floor.heard(Told(running.invocation, "WaitingForRetry", 2, 155.0, until=160.0), NOW)

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
        told = Told(running.invocation, "WaitingForRetry", number, NOW + number, until=1_000.0)
        floor.heard(told, NOW)
        floor.due(NOW + number)

    assert (len(floor._timers), list(target.queue.items)) == (1, [1])


def test_timers_of_what_no_longer_waits_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("engine.timers.LEAST", 10)
    floor = a_floor(slots=1)
    step = a_step(floor, 0)

    for ordinal in range(1, 200):
        a_retry(floor, step, ordinal, deadline=1_000.0)
        [running] = reserve(floor)
        floor.ended(step, ordinal, running.invocation)

    assert len(floor._timers) < 30


def test_a_run_that_is_over_leaves_no_timers(monkeypatch):
    monkeypatch.setattr("engine.timers.LEAST", 0)
    floor = a_floor(slots=1)
    step, other = a_step(floor, 0), a_step(floor, 0)
    for ordinal in range(1, 9):
        a_retry(floor, step, ordinal, deadline=1_000.0)
    a_retry(floor, other, deadline=2_000.0)

    floor.all_ended(step)
    floor.forget(step.run)

    assert (len(floor._timers), floor.next_due) == (1, 2_000.0)
