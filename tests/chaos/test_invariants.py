"""Each invariant is silent on a healthy plane and speaks on a planted violation."""

from uuid import uuid4

import pytest

from tests.support.fake_clusters import FakeClusters
from tests.support.invariants import INVARIANTS, violations
from tests.support.lifecycle_fixture import Lifecycles, unhurried


# A constraint that forbids the violation is taken away first: the invariant must not rely on it.
PLANTED = {
    "I02": """alter table answer drop constraint answer_pkey;
              insert into answer (caller, request_key, body_digest, outcome)
              values ('a', 'k', '', '{}'), ('a', 'k', '', '{}')""",
    "I03": "update operation set ended_at = null, status = 'InProgress'",
    "I04": """drop index one_running_operation_per_resource;
              insert into operation (tenant_id, subscription_key, location, resource_uid, resource_id, verb, caller)
              select 't', 's', 'local', uid, '/x', 'put', 'me' from machine, generate_series(1, 2)""",
    "I05": "update history set to_state = 'reserving' where seq = 2",
    "I06": "delete from history where seq = 2",
    "I07": "update machine set ended_at = clock_timestamp()",
    "I08": """insert into operation (tenant_id, subscription_key, location, resource_uid, resource_id, verb, caller)
              select 't', 's', 'local', uid, '/x', 'put', 'me' from machine""",
}


@pytest.fixture
async def lifecycles(db, settings, targets) -> Lifecycles:
    lifecycles = Lifecycles(db, unhurried(settings), targets, FakeClusters(targets))
    endpoint = {"host": "127.0.0.1", "port": targets.port}
    await lifecycles.put_server(endpoint=endpoint, administratorLogin=None)
    await lifecycles.run()
    return lifecycles


async def test_a_healthy_plane_has_no_violation(lifecycles):
    acked = [
        row["operation_id"]
        for row in await lifecycles.db.fetch("select operation_id from operation")
    ]

    assert await violations(lifecycles.db, acked) == []


@pytest.mark.parametrize("name", [*PLANTED])
async def test_a_planted_violation_is_found(lifecycles, name):
    await lifecycles.db.execute(PLANTED[name])

    assert any(found.startswith(name) for found in await violations(lifecycles.db))


async def test_a_lost_operation_is_found(lifecycles):
    assert [found[:3] for found in await violations(lifecycles.db, [uuid4()])] == ["I01"]


def test_every_invariant_is_planted():
    assert {name[:3] for name, _ in INVARIANTS.items()} == {"I01", *PLANTED}
