"""What the control plane does now, as a scrape shows it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fsm.launch.monitor import MONITOR, Monitor
from fsm.launch.queue import Queue
from muster.core.clock import Clock
from tests.support import arm

pytestmark = pytest.mark.newest


async def scraped(call) -> dict[tuple[str, ...], float]:
    text = (await call.get("/metrics")).raise_for_status().text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_work_that_waits_for_the_fsm_is_counted(settings):
    async with arm.client(settings) as call:
        before = await scraped(call)
        await arm.fill(call)
        after = await scraped(call)

    assert (before["muster_lifecycles_due",], before["muster_operations_active",]) == (0, 0)
    assert (after["muster_lifecycles_due",], after["muster_operations_active",]) == (1, 1)


async def test_the_last_round_of_the_monitor_is_shown(settings, db):
    clock = Clock()
    tick = ("muster_control_plane_tick_timestamp_seconds", MONITOR)
    async with arm.client(settings) as call:
        assert tick not in await scraped(call)
        await Monitor(db, Queue(settings), clock).sweep()

        shown = (await scraped(call))[tick]

    assert abs(shown - clock.now().timestamp()) < 60
