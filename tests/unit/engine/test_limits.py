"""How many tasks a database has at once: as its pool says, or else its server."""

from engine.scheduling.run_state import RunState
from engine.scheduling.limits import apply_limits


def told(*, server: int | None = None, pool: int | None = None) -> list[dict]:
    pools = [{"name": "gold", "max_connections": None, "slots_per_database": pool}]
    limits = {"max_connections": 20, "budget": None, "disabled": False, "pools": pools}
    return [{"server_id": "s", "slots_per_database": server} | limits]


def test_a_database_has_the_slots_of_its_pool_and_else_of_its_server():
    run_state = RunState(100)
    apply_limits(run_state, told(server=3, pool=1))

    *_, inside = run_state.tree.path("s", "gold", "a")
    *_, outside = run_state.tree.path("s", None, "b")

    assert (inside.slots, outside.slots) == (1, 3)


def test_a_new_limit_reaches_the_databases_that_are_there():
    run_state = RunState(100)
    apply_limits(run_state, told(server=3, pool=1))
    *_, inside = run_state.tree.path("s", "gold", "a")

    apply_limits(run_state, told(server=3, pool=2))
    assert inside.slots == 2

    apply_limits(run_state, told(server=4))
    assert inside.slots == 4


def test_a_database_that_leaves_its_pool_leaves_its_limit_behind():
    run_state = RunState(100)
    apply_limits(run_state, told(pool=1))
    *_, before = run_state.tree.path("s", "gold", "a")

    *_, after = run_state.tree.path("s", None, "a")

    assert after is before
    assert after.slots is None
