"""`/readyz` says whether writes are possible, not only whether the database answers."""

import shutil
from collections import namedtuple
from dataclasses import replace

import pytest

from muster.core.errors import Unavailable
from tests.support import arm
from workflows.readiness import Readiness

pytestmark = pytest.mark.newest

Usage = namedtuple("Usage", "total used free")


async def test_a_database_that_can_only_be_read_is_not_ready(settings, db):
    name = await db.fetchval("select current_database()")
    async with arm.application(settings) as app, arm.calling(app, token=None) as client:
        assert (await client.get("/readyz")).json() == {"status": "ok"}
    await db.execute(f'alter database "{name}" set default_transaction_read_only = on')

    async with arm.application(settings) as app, arm.calling(app, token=None) as client:
        reply = await client.get("/readyz")

    assert (reply.status_code, reply.json()["status"]) == (503, "unavailable")


async def test_a_full_disk_is_not_ready(settings, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 10, 0))
    embedded = replace(settings, data_dir=tmp_path)

    async with arm.application(embedded) as app, arm.calling(app, token=None) as client:
        reply = await client.get("/readyz")

    assert (reply.status_code, reply.json()) == (503, {"status": "unavailable"})
    assert '"code": "DiskFull"' in capsys.readouterr().err


async def test_many_probes_are_one_write(settings):
    async with arm.plane(settings) as plane:
        readiness, counted = Readiness(plane), plane.db
        await readiness.check()
        first = await counted.fetchval("select xmin::text from readiness")
        for _ in range(20):
            await readiness.check()

        assert await counted.fetchval("select xmin::text from readiness") == first


async def test_a_result_is_kept_for_a_second_only(settings, monkeypatch):
    async with arm.plane(settings) as plane:
        readiness = Readiness(plane)
        await readiness.check()
        monkeypatch.setattr(plane.clock, "monotonic", lambda: float("inf"))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 10, 0))
        monkeypatch.setattr(
            readiness, "_plane", replace(plane, settings=replace(settings, data_dir="x"))
        )

        with pytest.raises(Unavailable):
            await readiness.check()
