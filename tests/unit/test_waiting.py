"""A wait that times out says what it waited for."""

import pytest

from tests.support import attempts, launching, stack


async def test_a_wait_for_another_process_names_its_condition():
    with pytest.raises(TimeoutError, match=r"not within 0.05 s: .*1 > 2.*test_waiting\.py:\d+"):
        await launching.until(lambda: 1 > 2, within=0.05)


async def test_a_wait_at_a_target_names_its_condition_and_its_last_value():
    async def rows() -> list[str]:
        return []

    with pytest.raises(TimeoutError, match=r"async def rows.*the last value was \[\]"):
        await attempts.until(rows, limit=0.05)


def test_a_wait_for_a_whole_installation_names_its_condition():
    with pytest.raises(AssertionError, match=r"not within 0.05 s: .*no_such_file"):
        stack.until(lambda: "no_such_file" in [], seconds=0.05)


async def test_a_wait_with_a_description_prints_it():
    with pytest.raises(TimeoutError, match="not within 0.05 s: the host is registered"):
        await launching.until(lambda: False, within=0.05, what="the host is registered")


async def test_a_wait_returns_as_soon_as_the_condition_holds():
    values = iter([0, 0, 7])

    async def value() -> int:
        return next(values)

    assert await attempts.until(value) == 7
