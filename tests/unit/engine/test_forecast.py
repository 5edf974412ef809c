"""The shortest duration of a step: budgets, maxParallelism and waves."""

import pytest

from engine.scheduling.forecast import job_seconds, least_seconds
from engine.scheduling.rollout import RolloutRules

WAVES = {"rollout": {"waves": [1, 5], "pauseBetween": "PT10S"}}


@pytest.mark.parametrize(
    ("places", "budgets", "max_parallelism", "options", "rounds"),
    [
        ([("a", None)] * 10, {"a": 4}, None, {}, 3),
        ([("a", None)] * 10, {"a": 4}, 2, {}, 5),
        # maxParallelism holds in each pool, and outside of the pools
        ([("a", "p")] * 5 + [("a", None)] * 5, {"a": 10}, 1, {}, 5),
        # the slowest server decides
        ([("a", None)] * 8 + [("b", None)] * 3, {"a": 8, "b": 1}, None, {}, 3),
        # 1, 4 and 5 targets one after the other, with two pauses
        ([("a", None)] * 10, {"a": 4}, None, WAVES, 1 + 1 + 2),
        ([], {}, None, {}, 0),
    ],
)
def test_the_shortest_duration(places, budgets, max_parallelism, options, rounds):
    rules = RolloutRules.of(options, len(places))
    pauses = 20.0 if options else 0.0

    least = least_seconds(places, rules, budgets, max_parallelism, seconds=2.0)

    assert least == rounds * 2.0 + pauses


@pytest.mark.parametrize(
    ("steps", "least"),
    [
        ([(False, 3.0), (False, 4.0)], 7.0),
        ([(False, 3.0), (True, 4.0), (True, 1.0), (False, 2.0)], 6.0),
        ([(False, 3.0), (True, None)], None),
        ([], 0),
    ],
)
def test_steps_of_a_chain_overlap(steps, least):
    assert job_seconds(steps) == least
