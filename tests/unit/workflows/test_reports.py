"""Rows of many targets become one table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.errors import Conflict
from workflows.reports import OF_TARGET, joined


def part(columns: list[str], *rows: list[Any], truncated: bool = False) -> dict[str, Any]:
    target = {"serverName": "eu1", "databaseName": "d", "schemaName": None}
    return {**target, "columns": columns, "rows": list(rows), "truncated": truncated}


def test_nothing_is_an_empty_table() -> None:
    assert joined([]) == {"columns": list(OF_TARGET), "rows": [], "truncated": False}


def test_columns_meet_by_name_and_rows_are_filled_up() -> None:
    table = joined([part(["a", "b"], [1, 2]), part(["b", "c"], [3, 4], truncated=True)])

    assert table["columns"] == [*OF_TARGET, "a", "b", "c"]
    assert table["rows"] == [["eu1", "d", None, 1, 2, None], ["eu1", "d", None, None, 3, 4]]
    assert table["truncated"] is True


def test_a_second_column_of_one_name_is_another() -> None:
    table = joined([part(["a", "a"], [1, 2]), part(["a"], [3])])

    assert table["columns"][3:] == ["a", "a"]
    assert [row[3:] for row in table["rows"]] == [[1, 2], [3, None]]


def test_parts_that_would_make_a_huge_table_are_not_joined() -> None:
    parts = [part([f"c{n}-{i}" for i in range(100)], *[[None] * 100] * 10) for n in range(100)]

    with pytest.raises(Conflict) as refused:
        joined(parts)

    assert refused.value.code == "ControlSchemaDamaged"


NAMES = st.lists(st.sampled_from("abc"), max_size=5)


@given(st.lists(st.tuples(NAMES, st.integers(0, 3)), max_size=4))
def test_no_value_is_lost_and_every_row_is_as_wide_as_the_table(
    sets: list[tuple[list[str], int]],
) -> None:
    numbers = iter(range(1000))
    parts = [part(names, *([next(numbers) for _ in names] for _ in range(n))) for names, n in sets]

    table = joined(parts)

    assert {len(row) for row in table["rows"]} <= {len(table["columns"])}
    given = [
        (name, v)
        for p in parts
        for row in p["rows"]
        for name, v in zip(p["columns"], row, strict=True)
    ]
    kept = [
        (name, value)
        for row in table["rows"]
        for name, value in list(zip(table["columns"], row, strict=True))[3:]
        if value is not None
    ]
    assert sorted(given) == sorted(kept)
