"""Which statements an output table needs, and what is in its rows."""

from uuid import UUID

import pytest

from engine.attempt import output_table
from engine.attempt.output_table import OutputTable
from engine.model.output import OutputOptions, StepOutput
from muster.core.errors import InvalidRequest
from tests.support.attempts import a_task

OUTPUT = StepOutput("srv", "d", "dbo", 'T"x')
FAIL, ADD = OutputOptions(), OutputOptions(on_mismatch="addColumn")
COLUMNS = [("internal_execution_id", "uuid"), ("n", "integer")]
INDEX = (
    'create index if not exists "IX_T""x_Internal_Execution_ID" on "public"."T""x"'
    ' ("internal_execution_id")'
)


def test_a_table_that_is_missing_is_created_with_its_index():
    missing = OutputTable("public", exists=False, columns=frozenset())

    for options in (FAIL, ADD):
        assert output_table.changes(missing, OUTPUT, COLUMNS, options) == [
            'create table "public"."T""x" ("internal_execution_id" uuid, "n" integer)', INDEX,
        ]  # fmt: skip


def test_the_name_of_an_index_fits_or_is_left_to_the_server():
    output = StepOutput("srv", "d", "dbo", "t" * 60)
    missing = OutputTable("public", exists=False, columns=frozenset())

    _, index = output_table.changes(missing, output, COLUMNS, FAIL)

    assert index.startswith('create index on "public"."ttt')


def test_a_table_may_have_more_columns_than_the_result():
    table = OutputTable("public", True, frozenset({"internal_execution_id", "n", "more"}))

    assert output_table.changes(table, OUTPUT, COLUMNS, FAIL) == []


@pytest.mark.parametrize(
    ("columns", "missing"),
    [({"internal_execution_id"}, "n"), ({"n"}, "internal_execution_id"), ({"N", "x"}, "internal_execution_id, n")],
)  # fmt: skip
def test_a_column_that_is_missing_fails_unless_it_may_be_added(columns, missing):
    table = OutputTable("public", True, frozenset(columns))

    with pytest.raises(InvalidRequest, match=f'has no column {missing}. .*"addColumn"'):
        output_table.changes(table, OUTPUT, COLUMNS, FAIL)
    alter, *index = output_table.changes(table, OUTPUT, COLUMNS, ADD)
    for name, type in COLUMNS:
        added = f'add column if not exists "{name}" {type}' in alter
        assert added == (name not in columns)
    assert index == ([] if "internal_execution_id" in columns else [INDEX])


@pytest.mark.parametrize(
    ("oid", "type"),
    [
        (23, "integer"), (1700, "numeric"), (1184, "timestamp with time zone"), (3802, "jsonb"), (2950, "uuid"),
        (1043, "character varying"), (1042, "text"), (19, "text"), (790, "text"), (1560, "bit varying"),
        (2278, "text"), (705, "text"), (70001, "text"), (1007, "integer[]"),
    ],
)  # fmt: skip
def test_types_of_columns_do_not_depend_on_the_target(oid, type):
    assert output_table.column_type(oid) == type


def test_columns_of_ours_come_first_and_are_not_the_script_s():
    with_target = OutputOptions(include_target=True)

    assert output_table.table_columns([("n", 23)], FAIL) == COLUMNS
    assert [name for name, _ in output_table.table_columns([("n", 23)], with_target)] == [
        "internal_execution_id", "target_server", "target_database", "target_schema", "attempt", "n",
    ]  # fmt: skip
    assert output_table.table_columns([("attempt", 23)], FAIL)[1] == ("attempt", "integer")
    for name, options in (("internal_execution_id", FAIL), ("attempt", with_target)):
        with pytest.raises(InvalidRequest, match=f"'{name}'"):
            output_table.table_columns([(name, 23)], options)


def test_a_row_begins_with_its_execution_and_its_target():
    task = a_task(target_execution_id=UUID(int=1), database_name="a\tb", schema_name=None)

    assert output_table.row_prefix(task, 3, FAIL) == str(UUID(int=1)).encode()
    values = output_table.row_prefix(task, 3, OutputOptions(include_target=True)).split(b"\t")
    assert values[1:] == [b"eu1", b"a\\tb", b"\\N", b"3"]


def test_the_reply_of_the_server_is_read():
    table = output_table.found([["public", True, "a"], ["public", True, "b"]], OUTPUT)

    assert table == ("public", True, frozenset({"a", "b"}))
    assert output_table.found([["dbo", False, None]], OUTPUT) == ("dbo", False, frozenset())
    with pytest.raises(InvalidRequest, match="The database d has no schema dbo"):
        output_table.found([], OUTPUT)


def test_names_are_quoted_in_every_statement():
    table = OutputTable('p"q', True, frozenset())

    for text in (
        output_table.copy_rows(table, OUTPUT, [('c"d', "text")]),
        output_table.delete_rows(table, OUTPUT, UUID(int=1)),
    ):
        assert '"p""q"."T""x"' in text
    assert '"c""d"' in output_table.copy_rows(table, OUTPUT, [('c"d', "text")])
    assert "'a''b'" in output_table.find_table(StepOutput("s", "d", "a'b", "t"))
