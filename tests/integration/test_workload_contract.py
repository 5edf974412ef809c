"""The contract of the workload queue, check by check; the numbers are those of workloads.md, section 9.

24 holds without a live launcher only; 21 is a failure that nobody retries; 29 and 39 go up to the
workload's failure, since attempts of jobs are the engine's business.
"""

import pytest

from tests.integration.workload_checks import launching, monitor, moves, queue  # noqa: F401
from tests.integration.workload_checks.table import CHECKS
from tests.support.launching import QueueFixture, original, quick

WITH_PROCESSES = range(29, 40)


def test_no_check_is_missing():
    assert sorted(CHECKS) == [*range(1, 40), 60, 61, 62]


@pytest.mark.parametrize("number", sorted(CHECKS), ids=lambda n: f"{n}-{CHECKS[n].__name__}")
async def test_check(number, settings, db, tmp_path):
    chosen = quick(settings, tmp_path) if number in WITH_PROCESSES else original(settings)

    await CHECKS[number](QueueFixture(db, chosen))
