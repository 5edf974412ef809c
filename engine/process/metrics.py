"""What a core and a host count for Prometheus, since their process began; they send it with each heartbeat.

Nothing is read for it: counters are updated where their events are handled, and gauges are read off memory. The
control plane adds the account, and the names and help texts (api/metrics.py).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MOST_JOBS = 200  # with series of their own; all further ones together have the name OTHERS
MOST_SERVERS = 500
OTHERS = "(others)"
LAG_BUCKETS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0)  # seconds
DURATION_BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1800.0)


class Histogram:
    def __init__(self, buckets: tuple[float, ...]) -> None:
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._buckets, value)] += 1
        self._sum += value

    def report(self) -> dict[str, Any]:
        return {"buckets": self._buckets, "counts": self._counts, "sum": round(self._sum, 6)}


class Names:
    """The first ones keep their names, so that no series changes its meaning."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHERS
        self._known.add(name)
        return name


@dataclass
class CoreMetrics:
    jobs: Names = field(default_factory=lambda: Names(MOST_JOBS))
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by job and state
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)  # that ended, likewise
    slots: Counter[str] = field(default_factory=Counter)  # of schedules, by outcome
    lag: Histogram = field(default_factory=lambda: Histogram(LAG_BUCKETS))
    last_tick: float | None = None  # of the scheduler

    def attempt_ended(self, job: str, state: str) -> None:
        self.attempts[self.jobs.of(job), state] += 1

    def run_ended(self, job: str, state: str) -> None:
        self.runs[self.jobs.of(job), state] += 1

    def report(self, live: Iterable[tuple[str, int, int]]) -> dict[str, Any]:
        """`live`: for each live run the name of its job, and its waiting and running targets."""
        gauges: dict[str, list[int]] = {}
        for job, waiting, running in live:
            sums = gauges.setdefault(self.jobs.of(job), [0, 0, 0])
            for place, number in enumerate((1, waiting, running)):
                sums[place] += number
        return {
            "attempts": [[*key, number] for key, number in self.attempts.items()],
            "runs": [[*key, number] for key, number in self.runs.items()],
            "live": [[job, *sums] for job, sums in gauges.items()],
            "slots": dict(self.slots),
            "lag": self.lag.report(),
            "lastTick": self.last_tick,
        }


@dataclass
class HostMetrics:
    servers: Names = field(default_factory=lambda: Names(MOST_SERVERS))
    durations: Histogram = field(default_factory=lambda: Histogram(DURATION_BUCKETS))

    def attempt_ended(self, timings: dict[str, float]) -> None:
        """Of a script that was sent: without the waits for a slot and a session."""
        if timings:
            waits = timings.get("waiting", 0.0)
            self.durations.observe((sum(timings.values()) - waits) / 1000)

    def report(self, sessions: Iterable[tuple[str, int, int]]) -> dict[str, Any]:
        """`sessions`: for each server its name, how many are open, and how many requests wait for one."""
        sums: dict[str, list[int]] = {}
        for server, number, waiting in sessions:
            each = sums.setdefault(self.servers.of(server), [0, 0])
            each[0] += number
            each[1] += waiting
        return {
            "sessions": [[server, *numbers] for server, numbers in sums.items()],
            "durations": self.durations.report(),
        }
