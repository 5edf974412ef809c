"""The core's copy of live runs: prefetch, slots of finished tasks, and deadlines."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from engine.scheduling.rollout import RolloutRules, StepRollout
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import (
    PREFETCH_DEPTH,
    StepDefinition,
    StepPhase,
    Run,
    RunningTask,
    StepRun,
    CompletionItem,
    WaitingTarget,
)

HOST = UUID(int=1)
NOW = 100.0
IN_PAIRS = 0.25  # seconds of a task after which one more is prefetched
FOUR = 0.125  # the same, four tasks in one slot
FAST = 0.001


def a_state(slots: int = 2) -> RunState:
    state = RunState(slots)
    state.tree.set_hosts({HOST: 100}, {})
    state.tree.limit(state.tree.server("s"), None)
    return state


def a_step(
    state: RunState,
    targets: int,
    *,
    seconds: float | None = IN_PAIRS,
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
    state.runs[run.id] = run
    step = StepRun(run, plan, phase=StepPhase.QUEUED, seconds=seconds)
    run.live.append(step)
    for ordinal in range(1, targets + 1):
        row = {"ordinal": ordinal, "attempts": 0, "not_before": None, "deadline": None}
        place = {"server_id": "s", "pool_name": pool, "database_name": "d"}
        state.load(step, row | place | {"invocation_id": None})
    return step


def reserve(state: RunState) -> list[RunningTask]:
    """As the controller does, first those that have room."""
    made = []
    while found := state.pick():
        made.append(RunningTask(*found))
        take(state, made[-1])
    for running in state.prefetch(100):
        made.append(running)
        take(state, running)
    return made


def take(state: RunState, running: RunningTask) -> None:
    running.invocation = uuid4()
    state.reserved(running, NOW)


def over(
    state: RunState, running: RunningTask, *, after: float = IN_PAIRS, lifecycle: str = "Succeeded"
) -> None:
    state.apply_result(CompletionItem(running.invocation, lifecycle, 1), NOW + after)


def ordinals(made: list[RunningTask]) -> list[tuple[int, int | None]]:
    """With that of the task before it in its slot."""
    return [(one.target.ordinal, before(one)) for one in made]


def before(running: RunningTask) -> int | None:
    tasks = running.slot.tasks
    place = tasks.index(running) if running in tasks else 0
    return tasks[place - 1].target.ordinal if place else None


def test_each_slot_prefetches_one_and_passes_to_it():
    state = a_state(slots=2)
    step = a_step(state, 6)

    first = reserve(state)
    assert ordinals(first) == [(1, None), (2, None), (3, 1), (4, 2)]
    over(state, first[0])
    then = reserve(state)

    assert ordinals(then) == [(5, 3)]
    assert state.tree.instance.used == 2
    while state.running:
        over(state, next(iter(state.running.values())))
        reserve(state)
    assert step.finished
    assert state.tree.instance.used == 0


def test_no_prefetch_after_a_long_task_or_while_another_job_waits():
    state = a_state(slots=1)
    step = a_step(state, 3, seconds=None)

    [first] = reserve(state)
    over(state, first, after=0.6)
    [second] = reserve(state)
    step.seconds = FAST
    a_step(state, 1)

    assert ordinals([first, second]) == [(1, None), (2, None)]
    assert reserve(state) == [], "another job waits"


def test_a_prefetched_task_that_the_host_released_waits_again_and_stops_prefetch():
    state = a_state(slots=1)
    step = a_step(state, 2)
    first, prefetched = reserve(state)

    over(state, prefetched, lifecycle="Created")

    assert (list(step.waiting), state.tree.instance.used) == ([2], 1)
    assert reserve(state) == []
    over(state, first)
    assert ordinals(reserve(state)) == [(2, None)]


def test_a_lowered_limit_holds_before_any_prefetch():
    state = a_state(slots=2)
    a_step(state, 9)
    first = reserve(state)

    state.tree.limit(state.tree.instance, 1)
    over(state, first[0])
    over(state, first[1])

    assert ordinals(reserve(state)) == [], "two are there, one may be"
    over(state, first[2], after=2 * IN_PAIRS)
    assert ordinals(reserve(state)) == [(5, 4)]
    assert state.tree.instance.used == 1


def test_no_prefetch_for_a_paused_job():
    state = a_state(slots=1)
    step = a_step(state, 2)
    first = RunningTask(*state.pick())
    take(state, first)

    state.tree.pause_jobs({step.run.job_id})

    assert reserve(state) == []
    state.tree.pause_jobs(set())
    assert ordinals(reserve(state)) == [(2, 1)]


def test_a_slot_is_free_when_both_tasks_are_gone_in_any_order():
    for first in (0, 1):
        state = a_state(slots=1)
        step = a_step(state, 2)
        both = reserve(state)

        for number in (first, 1 - first):
            state.remove(step, both[number].target.ordinal, both[number].invocation)

        assert (state.tree.instance.used, step.finished, state.running) == (0, True, {})


def test_a_prefetched_task_of_a_lost_host_returns_without_its_slot():
    state = a_state(slots=1)
    step = a_step(state, 2)
    first, prefetched = reserve(state)

    state.release(prefetched.invocation)
    state.rename(first.invocation, new := uuid4())

    assert state.tree.instance.used == 1
    assert list(step.waiting) == [2]
    over(state, state.running[new])
    assert ordinals(reserve(state)) == [(2, None)]


@pytest.mark.parametrize(
    ("last", "many"),
    [
        (None, 1),
        (0.0, PREFETCH_DEPTH),
        (FAST, PREFETCH_DEPTH),
        (0.05, 10),
        (FOUR, 4),
        (IN_PAIRS, 2),
        (0.3, 1),
        (0.5, 1),
        (9.0, 1),
    ],
)
def test_the_shorter_the_last_task_was_the_more_are_prefetched(last, many):
    state = a_state(slots=1)
    a_step(state, 100, seconds=last)

    made = reserve(state)

    assert ordinals(made) == [(1, None), *((n, n - 1) for n in range(2, many + 1))]
    assert state.tree.instance.used == 1


def test_the_last_finished_task_decides_how_many_are_prefetched():
    state = a_state(slots=1)
    step = a_step(state, 100, seconds=None)
    [first] = reserve(state)

    over(state, first, after=0.01)
    quick = step.seconds
    then = reserve(state)
    over(state, then[0], after=0.8)

    assert quick == pytest.approx(0.01)
    assert len(then) == PREFETCH_DEPTH
    assert step.seconds == pytest.approx(0.8)
    assert step.prefetch_depth == 1


@pytest.mark.parametrize(("after", "many"), [(FAST, 25), (9.0, 0)])
def test_a_slow_task_stops_prefetch(after, many):
    state = a_state(slots=1)
    step = a_step(state, 100, seconds=FAST)
    first, *rest = reserve(state)
    for running in rest[7:]:
        state.remove(step, running.target.ordinal, running.invocation)

    over(state, first, after=after)

    assert state.tree.instance.used == 1
    assert len(reserve(state)) == many


def test_results_of_a_batch_share_its_duration():
    state = a_state(slots=1)
    step = a_step(state, 9, seconds=0.0)
    batch = reserve(state)

    for task in batch[:8]:
        over(state, task, after=0.8)

    assert len(batch) == 9
    assert step.seconds == pytest.approx(0.1)


def test_a_prefetched_task_holds_the_slot_from_the_end_of_the_task_before_it():
    state = a_state(slots=1)
    step = a_step(state, 2, seconds=IN_PAIRS)
    first, prefetched = reserve(state)

    over(state, first, after=IN_PAIRS)
    over(state, prefetched, after=2 * IN_PAIRS)

    assert step.seconds == pytest.approx(IN_PAIRS)


def test_slots_of_one_database_share_what_waits_there():
    state = a_state(slots=2)
    a_step(state, 10, seconds=FAST)

    made = reserve(state)

    first, second = made[0].slot, made[1].slot
    assert len(first.tasks) == 5, "its half of the eight that wait"
    assert len(second.tasks) > 1, "the other slot has some of the rest"
    made += reserve(state)
    assert len(made) == 10
    assert {running.slot for running in made} == {first, second}
    assert state.tree.instance.used == 2


def test_no_more_is_prefetched_than_one_reservation_holds():
    state = a_state(slots=2)
    a_step(state, 100, seconds=FAST)
    for _ in range(2):
        take(state, RunningTask(*state.pick()))

    made = list(state.prefetch(20))

    assert len(made) == 20


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("who", ["database", "pool", "parallelism", "per_database"])
def test_where_parallelism_is_limited_each_slot_prefetches_one(who, slots):
    state = a_state(slots=9)
    match who:
        case "database":
            a_step(state, 100, seconds=FAST)
            state.tree.limit(state.tree.server("s").databases["d"], slots)
        case "pool":
            state.tree.limit(state.tree.pool("s", "p"), slots)
            a_step(state, 100, seconds=FAST, pool="p")
        case name:
            a_step(state, 100, seconds=FAST, **{name: slots})

    made = reserve(state) + reserve(state)

    assert [running.is_prefetched for running in made] == [False] * slots + [True] * slots
    assert {len(running.slot.tasks) for running in made} == {2}


def test_the_limit_of_a_server_does_not_limit_prefetch():
    state = a_state(slots=9)
    state.tree.limit(state.tree.server("s"), 1)
    a_step(state, 100, seconds=FAST)

    assert len(reserve(state)) == PREFETCH_DEPTH


def test_a_slot_is_filled_up_when_half_of_its_tasks_are_gone():
    state = a_state(slots=1)
    a_step(state, 100, seconds=FOUR)
    first = reserve(state)

    over(state, first[0], after=FOUR)
    then = reserve(state)
    over(state, first[1], after=2 * FOUR)

    assert (ordinals(first)[-1], then) == ((4, 3), [])
    assert ordinals(reserve(state)) == [(5, 4), (6, 5)]
    assert len(first[2].slot.tasks) == 4


def test_a_task_in_the_middle_of_a_slot_leaves_and_the_others_close_the_gap():
    state = a_state(slots=1)
    step = a_step(state, 4, seconds=FOUR)
    one, two, three, four = reserve(state)
    slot = one.slot
    assert reserve(state) == [], "no target waits"

    state.remove(step, two.target.ordinal, two.invocation)
    assert slot.tasks == [one, three, four]
    state.release(three.invocation)
    assert slot.tasks == [one, four]
    over(state, one, after=FOUR)

    assert (slot.tasks, slot.since, state.tree.instance.used) == ([four], NOW + FOUR, 1)
    assert ordinals(reserve(state)) == [(3, 4)]


def test_the_next_prefetched_task_queues_after_the_last_one_that_is_left():
    state = a_state(slots=1)
    step = a_step(state, 6, seconds=FOUR)
    one, two, three, four = reserve(state)

    for running in (four, three):
        state.remove(step, running.target.ordinal, running.invocation)

    assert ordinals(reserve(state)) == [(5, 2), (6, 5)]
    assert one.slot.tasks[:2] == [one, two]


def test_the_nodes_of_a_slot_are_held_until_its_last_task_finished():
    state = a_state(slots=1)
    step = a_step(state, PREFETCH_DEPTH, seconds=FAST)
    made = reserve(state)

    used = []
    for number, running in enumerate(made, 1):
        over(state, running, after=FAST * number)
        used.append((state.tree.instance.used, state.tree.server("s").used))

    assert used == [(1, 1)] * (PREFETCH_DEPTH - 1) + [(0, 0)]
    assert step.finished


def test_no_prefetch_for_a_cancelled_step():
    state = a_state(slots=1)
    step = a_step(state, 100, seconds=FOUR)
    first = reserve(state)

    step.canceled = True
    for number, running in enumerate(first[:3], 1):
        over(state, running, after=FOUR * number)

    assert reserve(state) == []


def a_retry(
    state: RunState, step: StepRun, ordinal: int = 1, *, due: float | None = None, deadline: float
) -> WaitingTarget:
    """Of a target that was tried before, on another database than the rest."""
    row = {"ordinal": ordinal, "attempts": 1, "not_before": at(due), "deadline": at(deadline)}
    place = {"server_id": "s", "pool_name": None, "database_name": "e", "invocation_id": None}
    state.load(step, row | place)
    return step.waiting[ordinal]


def at(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)


def test_a_retry_that_waits_for_a_slot_is_late_at_its_deadline_and_not_before():
    state = a_state(slots=1)
    a_step(state, 1, seconds=None)
    reserve(state)  # the only slot is another run's
    step = a_step(state, 0)
    target = a_retry(state, step, due=101.0, deadline=160.0)

    early = [state.due(moment) for moment in (101.0, 102.0, 159.0)]
    waited = state.next_due
    late = state.due(160.0)

    assert (early, waited, late) == ([[], [], []], 160.0, [(step, target)])
    assert not target.queue.items, "nobody may pick it any more"
    state.expire(step, 1, NOW)
    assert (step.finished, state.next_due) == (True, None)


def test_a_target_that_never_began_is_never_late():
    state = a_state(slots=1)
    step = a_step(state, 2, seconds=None)
    [running] = reserve(state)

    state.release(running.invocation)
    [again] = reserve(state)
    over(state, again, lifecycle="Created")

    assert (state.next_due, state.due(10_000.0)) == (None, [])
    assert sorted(step.waiting) == [1, 2]


def test_what_was_tried_has_the_deadline_that_the_database_tells():
    state = a_state(slots=1)
    step = a_step(state, 1, seconds=None)
    [running] = reserve(state)

    state.apply_result(
        CompletionItem(running.invocation, "Created", 0, not_before=102.0, deadline=150.0), NOW
    )
    state.tree.pause_jobs({step.run.job_id})

    assert (state.next_due, state.due(102.0), state.next_due) == (102.0, [], 150.0)
    assert state.due(150.0) == [(step, step.waiting[1])]


def test_a_target_is_late_once_although_several_timers_are_due():
    state = a_state()
    step = a_step(state, 0)
    a_retry(state, step, deadline=160.0)
    [running] = reserve(state)

    state.apply_result(
        CompletionItem(running.invocation, "WaitingForRetry", 2, 155.0, deadline=160.0), NOW
    )

    assert state.due(170.0) == [(step, step.waiting[1])]


def test_one_that_the_database_gives_more_time_is_asked_about_again_later():
    state = a_state(slots=1)
    step = a_step(state, 0)
    target = a_retry(state, step, deadline=160.0)
    [late] = state.due(160.0)

    state.postpone(*late, until=161.0)

    assert (list(target.queue.items), state.next_due) == ([1], 161.0)
    assert (state.due(160.5), state.due(161.0)) == ([], [(step, target)])


def test_a_target_has_one_timer_for_its_deadline_however_often_it_is_tried():
    state = a_state(slots=1)
    step = a_step(state, 0)
    target = a_retry(state, step, deadline=1_000.0)

    for number in range(1, 20):
        [running] = reserve(state)
        told = CompletionItem(
            running.invocation, "WaitingForRetry", number, NOW + number, deadline=1_000.0
        )
        state.apply_result(told, NOW)
        state.due(NOW + number)

    assert (len(state._timers), list(target.queue.items)) == (1, [1])


def test_timers_of_what_no_longer_waits_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("engine.scheduling.timers.MIN_CLEANUP", 10)
    state = a_state(slots=1)
    step = a_step(state, 0)

    for ordinal in range(1, 200):
        a_retry(state, step, ordinal, deadline=1_000.0)
        [running] = reserve(state)
        state.remove(step, ordinal, running.invocation)

    assert len(state._timers) < 30


def test_a_run_that_is_over_leaves_no_timers(monkeypatch):
    monkeypatch.setattr("engine.scheduling.timers.MIN_CLEANUP", 0)
    state = a_state(slots=1)
    step, other = a_step(state, 0), a_step(state, 0)
    for ordinal in range(1, 9):
        a_retry(state, step, ordinal, deadline=1_000.0)
    a_retry(state, other, deadline=2_000.0)

    state.remove_waiting(step)
    state.remove_run(step.run)

    assert (len(state._timers), state.next_due) == (1, 2_000.0)


def test_prefetched_tasks_use_no_slots_of_their_host():
    state = a_state(slots=2)
    a_step(state, 9, seconds=0.0)
    reserve(state)

    assert len(state.running) == 9
    assert state.used_slots() == {HOST: 2}


def an_unlisted(state: RunState, **more) -> StepRun:
    """A step whose second target is a server that could not be listed."""
    step = a_step(state, 1)
    step.rollout = StepRollout(RolloutRules((1, 2)))
    row = {
        "ordinal": 2,
        "attempts": 1,
        "not_before": at(NOW),
        "deadline": at(NOW + 10),
        "invocation_id": None,
    }
    place = {"server_id": "S", "pool_name": None, "database_name": None, "unlisted": True}
    step.rollout.wave = 2
    state.load(step, row | place | more)
    return step


def test_a_server_that_could_not_be_listed_is_listed_before_its_next_attempt():
    state = a_state()
    step = an_unlisted(state)
    target = step.waiting[2]

    assert state.due(NOW + 1) == []
    assert state.unlisted == {step: [target]}
    assert target.unlisted == ("s", "")
    assert 2 not in target.queue.items

    state.retry(step, target)
    state.retry(step, target)

    assert list(target.queue.items) == [2]
    assert state.due(NOW + 11) == [(step, target)], "its deadline is watched meanwhile"


def test_targets_take_the_place_of_their_server_in_the_last_wave():
    state = a_state()
    step = an_unlisted(state)
    rows = [
        {"ordinal": ordinal, "server_id": "S", "pool_name": None, "database_name": f"d{ordinal}",
         "unlisted": False, "skipped": ordinal == 4}
        for ordinal in (3, 4, 5)
    ]  # fmt: skip

    state.replace(step, 2, rows)

    assert sorted(step.waiting) == [1, 3, 5]
    assert step.rollout.rules.wave_ends == (1, 5)
    assert step.rollout.may_start(5)
    assert step.rollout.rules.wave_starts == [2]
