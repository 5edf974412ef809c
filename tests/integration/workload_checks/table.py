"""The checks of the workload contract (workloads.md 9) by their number."""

from collections.abc import Awaitable, Callable
from typing import Any

Check = Callable[[Any], Awaitable[None]]

CHECKS: dict[int, Check] = {}


def check(number: int) -> Callable[[Check], Check]:
    def register(function: Check) -> Check:
        assert number not in CHECKS
        CHECKS[number] = function
        return function

    return register
