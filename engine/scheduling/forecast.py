"""How long the targets of a step take at least, if each attempt takes the same time.

rounds = least_rounds([("eu1", None)] * 10, {"eu1": 4}, max_parallelism=None)      # {"eu1": 3}
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from engine.scheduling.rollout import RolloutRules

Place = tuple[str, str | None]  # server and pool


def least_rounds(
    places: Iterable[Place], budgets: Mapping[str, int], max_parallelism: int | None
) -> dict[str, int]:
    """By server, how many attempts follow each other at least: at most so many run at once as its budget, and as
    maxParallelism in each pool and outside of the pools.
    """
    counts = Counter(places)
    rounds: dict[str, int] = {}
    for server in {server for server, _ in counts}:
        of_server = {place: count for place, count in counts.items() if place[0] == server}
        longest = max(of_server.values()) if max_parallelism else 0
        rounds[server] = max(
            ceil(sum(of_server.values()) / budgets[server]), ceil(longest / (max_parallelism or 1))
        )
    return rounds


def least_seconds(
    places: Sequence[Place],
    rules: RolloutRules,
    budgets: Mapping[str, int],
    max_parallelism: int | None,
    seconds: float,
) -> float:
    """Of a step whose attempts take so many seconds: a wave begins when the one before it has ended everywhere."""
    total, begin = rules.pause * (len(rules.wave_ends) - 1), 0
    for end in rules.wave_ends:
        rounds = least_rounds(places[begin:end], budgets, max_parallelism)
        total += max(rounds.values(), default=0) * seconds
        begin = end
    return total


def job_seconds(steps: Iterable[tuple[bool, float | None]]) -> float | None:
    """Of a job, by its steps: whether one goes on per target, and its least seconds. None: those of one are unknown.

    Steps of a chain overlap, so only the longest of them counts.
    """
    chains: list[float] = []
    for is_per_target, seconds in steps:
        if seconds is None:
            return None
        if is_per_target:
            chains[-1] = max(chains[-1], seconds)
        else:
            chains.append(seconds)
    return sum(chains)
