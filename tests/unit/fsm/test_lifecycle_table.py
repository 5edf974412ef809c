from datetime import timedelta
from enum import StrEnum

import pytest

from fsm import docs
from fsm.lifecycles import LIFECYCLES
from fsm.lifecycle_table import Done, End, Lifecycle, Rest, Step, shielded
from muster.core.errors import Internal

# A state name stands in rows: it may be retired, never renamed. Add here, never remove.
EVER_USED = {
    "server": "reserving making starting verifying ready updating removing_children stopping removing "
    "failed delete_failed deleted",
    "database": "looking creating verifying ready updating dropping failed delete_failed deleted",
    "resourceGroup": "deleting delete_failed deleted",
    "account": "reserving preparing_database queuing_instance starting_instance ready updating "
    "recovering disabled draining stopping_instance releasing failed delete_failed deleted",
}
MINUTE = timedelta(minutes=1)


class S(StrEnum):
    A = "a"
    B = "b"
    C = "c"


async def work(_ctx):
    return Done()


def lifecycle(*rows, **options):
    return Lifecycle("toy", rows, shown_as=None, **options)


def test_a_table_becomes_a_machine_that_knows_its_moves():
    toy = lifecycle(
        Step(S.A, "Creating", "Creating", work, S.B, MINUTE, S.B),
        Rest(S.B, "Ready", "Succeeded", {"delete": S.C}),
        End(S.C),
        interrupts={"delete": S.C},
    )

    assert toy.move("a", "done") == "b"
    assert toy.move("a", "delete") == "c"
    assert toy.edges() == [
        ("a", "done", "b"),
        ("a", "give_up", "b"),
        ("a", "delete", "c"),
        ("b", "delete", "c"),
    ]
    with pytest.raises(Internal, match="no edge 'update' from state b"):
        toy.move("b", "update")
    with pytest.raises(Internal, match="no state x"):
        toy.row("x")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([Step(S.A, "x", "x", work, S.B, MINUTE, S.B), End(S.B)], "state c has no row"),
        ([Step(S.A, "x", "x", work, S.B, MINUTE, S.B), End(S.B), End(S.B), End(S.C)], "two rows"),
        ([Step(S.A, "x", "x", work, S.A, MINUTE, S.B), Rest(S.B, "x", "x", {"go": S.C}), Rest(S.C, "x", "x", {"go": S.A})], "nothing ends it"),
        ([End(S.A), Rest(S.B, "x", "x", {"go": S.C}), Rest(S.C, "x", "x", {"go": S.A})], "begins with its end"),
        ([Step(S.A, "x", "x", work, S.B, MINUTE, S.B), Rest(S.B, "x", "x", {"done": S.C}), End(S.C)], "internal event"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        lifecycle(*rows)


def test_a_state_that_nothing_reaches_is_refused():
    rows = [
        Step(S.A, "x", "x", work, S.C, MINUTE, S.C),
        Rest(S.B, "x", "x", {"go": S.C}),
        End(S.C),
    ]
    with pytest.raises(Exception, match="(?i)reach|unreachable|disconnected"):
        lifecycle(*rows)


@pytest.mark.parametrize("name", LIFECYCLES)
def test_state_names_are_never_renamed(name):
    assert {str(state) for state in LIFECYCLES[name].rows} <= set(EVER_USED[name].split())


@pytest.mark.parametrize("table", LIFECYCLES.values(), ids=LIFECYCLES)
def test_every_state_can_be_left_by_delete_or_is_deleting(table):
    for row in table.rows.values():
        assert shielded(row) or "delete" in table.interrupted_by(row.state)


@pytest.mark.parametrize("table", LIFECYCLES.values(), ids=LIFECYCLES)
def test_every_provisioning_state_is_one_the_database_knows(table):
    known = {"Creating", "Updating", "Deleting", "Succeeded", "Failed", "Canceled"}
    shown = {row.provisioning for row in table.rows.values() if not isinstance(row, End)}
    assert shown <= known


@pytest.mark.parametrize("table", LIFECYCLES.values(), ids=LIFECYCLES)
def test_a_page_draws_every_edge(table):
    page = docs.page(table)

    assert "stateDiagram-v2" in page
    for source, _, target in table.edges():
        assert f"{source} --> {target}" in page


def test_the_pages_are_fresh():
    assert docs.main(["--check"]) == 0


def test_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "FOLDER", tmp_path / "x")
    assert docs.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
