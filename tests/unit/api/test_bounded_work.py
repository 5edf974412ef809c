"""The work for a request has a limit: CPU time of this thread, so a busy machine is no failure."""

import contextlib
import time
from collections.abc import Callable

import pytest

from api.shape import Findings, shape_of
from muster.core.errors import Fault
from workflows.audit import parse_filter
from workflows.model.server import ServerProperties

LARGEST_CPU = 0.1  # seconds
MEMBERS = {f"administratorLogim{number:05}": 1 for number in range(2 * 1024 * 1024 // 26)}


def unknown_members() -> None:
    found = Findings(merge=False)
    shape_of(ServerProperties)(MEMBERS, "properties", found)
    assert len(found.errors) == 50
    assert "Did you mean 'administratorLogin'?" in found.errors[0].message


@pytest.mark.parametrize(
    "work",
    [
        unknown_members,
        lambda: parse_filter(" " * 8192),
        lambda: parse_filter("and " * 2048),
        lambda: parse_filter("caller eq '" + "x" * 8192),
    ],
)
def test_the_largest_input_costs_little(work: Callable[[], None]) -> None:
    def cpu() -> float:
        began = time.thread_time()
        with contextlib.suppress(Fault):
            work()
        return time.thread_time() - began

    assert min(cpu() for _ in range(3)) < LARGEST_CPU
