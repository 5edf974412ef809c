"""`muster run results`: one table over all targets, and nothing left out in silence."""

import json

import httpx
import pytest
import yaml

from tests.unit.cli.fake_rest import (
    JOB, RUN, RUN_ID, a_page, a_run, a_summary, file, listed, sets, with_files,
)  # fmt: skip

RESULTS = f"{RUN}/results"
WHERE = ["serverName", "databaseName", "schemaName"]
CUT = "Some targets returned more rows than are kept.\n"


@pytest.fixture(autouse=True)
def newest(rest):
    rest.on("GET", f"{JOB}/executions", listed(a_run()))


def test_results_are_joined_over_pages_by_column_name(muster, rest):
    first = {
        "stepName": "main",
        "set": 2,
        "columns": [*WHERE, "n"],
        "rows": [["fleet-1", "a", None, 1]],
        "targets": 2,
        "truncated": True,
    }
    second = {
        "stepName": "main",
        "set": 2,
        "columns": [*WHERE, "m", "n"],
        "rows": [["fleet-2", "b", None, "x", 2]],
        "targets": 2,
        "truncated": False,
    }
    first |= {"nextLink": f"https://elsewhere{RUN}/results/2?api-version=1"}
    rest.on("GET", RESULTS, sets(a_page(["fleet-1", "a", None, 0]), first))
    rest.on("GET", f"{RUN}/results/2", second)

    _, out, _ = muster("run", "results", "nightly", "--set", "2")

    assert out.splitlines() == [
        "server   database  n  m",
        "fleet-1  a         1",
        "fleet-2  b         2  x",
        "2 rows from 2 targets.",
        "Some targets returned more rows than are kept.",
    ]
    assert rest.asked(RESULTS)[0] == {"set": "2", "$top": "1000"}


def test_json_is_a_list_of_objects_and_files_are_passed_on_as_they_come(muster, rest):
    lines = (
        '{"target_server":"s","n":1.00000000000000000001}\n{"target_server":"\u2028","n":null}\n'
    )
    table = "target_server,n\r\ns,1\r\ns,\r\n"
    page = a_page(["s", "d", None, 1])
    rest.on("GET", RESULTS, with_files(page, ndjson=file(lines), csv=file(table, truncated=1)))

    listed_ = muster("run", "results", "nightly", "-o", "json")
    csv = muster("run", "results", "nightly", "-o", "csv")

    assert json.loads(listed_[1]) == [
        {"target_server": "s", "n": 1.00000000000000000001}, {"target_server": "\u2028", "n": None},
    ]  # fmt: skip
    assert "1.00000000000000000001" in listed_[1]
    assert muster("run", "results", "nightly", "-o", "ndjson")[1] == lines
    assert (csv[1].encode(), csv[2]) == (table.encode(), CUT)
    assert rest.asked(RESULTS)[-1] == {"step": "main", "set": "1", "format": "ndjson"}


def test_a_file_that_breaks_off_is_an_error(muster, rest):
    def broken():
        yield b'{"n":1}\n'
        raise httpx.RemoteProtocolError("incomplete chunked read")

    page = a_page(["s", "d", None, 1])
    rest.on("GET", RESULTS, with_files(page, ndjson=httpx.Response(200, content=broken())))

    code, out, err = muster("run", "results", "nightly", "-o", "ndjson")

    assert (code, out) == (1, '{"n":1}\n')
    assert "what was written is not complete" in err


CHANGES = listed(
    *(
        {
            "serverName": "s",
            "databaseName": name,
            "commandTags": [
                {"statement": 1, "tag": f"UPDATE {rows}", "rows": rows},
                {"statement": 2, "tag": "CREATE INDEX"},
                {"statement": 3, "tag": "SELECT 1", "rows": 1},
            ],
        }
        for name, rows in (("a", 3), ("b", 4))
    )
)


def test_what_a_script_changed_is_shown_by_target_and_in_total(muster, rest):
    rest.on("GET", RESULTS, a_page())
    rest.on("GET", f"{RUN}/commandTags", CHANGES)

    _, out, _ = muster("run", "results", "nightly")
    listed_ = json.loads(muster("run", "results", "nightly", "-o", "json")[1])
    csv = muster("run", "results", "nightly", "-o", "csv")[1]

    assert out.splitlines() == [
        "server  database  statement  tag           rows",
        "s       a                 1  UPDATE 3      3",
        "s       a                 2  CREATE INDEX",
        "s       b                 1  UPDATE 4      4",
        "s       b                 2  CREATE INDEX",
        "UPDATE 7 on 2 targets.",
        "CREATE INDEX on 2 targets.",
    ]
    where = {"target_server": "s", "target_database": "a", "target_schema": None}
    assert listed_[0] == {**where, "statement": 1, "tag": "UPDATE 3", "rows": 3}
    assert csv.splitlines()[:2] == [
        "target_server,target_database,target_schema,statement,tag,rows",
        "s,a,,1,UPDATE 3,3",
    ]


def test_totals_stand_below_rows_that_a_script_returned(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["s", "a", None, 1])))
    rest.on("GET", f"{RUN}/commandTags", CHANGES)

    assert muster("run", "results", "nightly")[1].splitlines()[-3:] == [
        "1 row from 2 targets.",
        "UPDATE 7 on 2 targets.",
        "CREATE INDEX on 2 targets.",
    ]


def test_columns_of_the_same_name_are_both_kept(muster, rest):
    page = {
        "columns": [*WHERE, "count", "count"],
        "rows": [["s", "d", None, 1, 2]],
        "targets": 1,
        "truncated": False,
    }
    rest.on("GET", RESULTS, page)

    assert muster("run", "results", "nightly", "-o", "tsv")[1].splitlines() == [
        "server\tdatabase\tschema\tcount\tcount_2",
        "s\td\t\t1\t2",
    ]


def test_head_is_for_people_only(muster, rest):
    page = {
        "columns": [*WHERE, "n"],
        "rows": [["s", "d", None, n] for n in range(5)],
        "targets": 5,
        "truncated": False,
    }
    rest.on("GET", RESULTS, sets(page))

    assert muster("run", "results", "nightly", "--head", "2")[1].splitlines()[3:] == [
        "… 3 more",
        "5 rows from 5 targets.",
    ]
    assert len(muster("run", "results", "nightly", "--head", "2", "-o", "tsv")[1].splitlines()) == 6
    assert muster("run", "results", "nightly", "--set", "0")[0] == 1


def test_what_was_cut_is_told_beside_the_data(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["s", "d", None, 1], truncated=True)))

    _, out, err = muster("run", "results", "nightly", "-o", "tsv")

    assert err == CUT and "kept" not in out


def test_one_row_of_one_target_is_told_as_one(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["s", "d", None, 1], targets=1)))

    assert muster("run", "results", "nightly")[1].splitlines()[-1] == "1 row from 1 target."


def test_a_set_that_is_not_there_is_not_found(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["s", "d", None, 1]), a_page(["s", "d", None, 2])))

    code, out, err = muster("run", "results", "nightly", "--set", "9")

    assert (code, out) == (6, "")
    assert err == "muster: there is no result set 9: the last one is 2\n"
    assert muster("run", "results", "nightly", "--set", "3")[0] == 6


def test_people_are_told_of_further_sets(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["s", "d", None, 1]), a_page(["s", "d", None, 2])))

    assert "--set 2" in muster("run", "results", "nightly")[1].splitlines()[-1]
    assert "--set" not in muster("run", "results", "nightly", "--set", "2")[1]
    assert muster("run", "results", "nightly", "-o", "tsv")[2] == ""


@pytest.mark.parametrize(
    ("summary", "advice"),
    [
        (a_summary("Failed", Failed=2), "muster run errors"),
        (a_summary("Canceled", Canceled=2), "muster run show"),
        (a_summary("InProgress", InProgress=2), "muster run watch"),
    ],
)
@pytest.mark.parametrize("form", ["table", "tsv"])
def test_no_results_are_told_with_what_to_do(muster, rest, summary, advice, form):
    rest.on("GET", RESULTS, a_page(targets=0))
    rest.on("GET", f"{RUN}/summary", summary)

    code, out, err = muster("run", "results", "nightly", "-o", form)

    assert code == 0 and err.startswith("No target has succeeded") and advice in err
    assert out == ("" if form == "table" else "server\tdatabase\tschema\n")


# Notices


MESSAGES = f"{RUN}/messages"


def a_voice(*notices, database="a"):
    where = {"stepName": "main", "serverName": "fleet-1", "databaseName": database, "attempt": 1}
    return {**where, "notices": list(notices)}


def test_notices_stand_beside_the_results_with_their_target(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["fleet-1", "a", None, 1])))
    notice = {"severity": "WARNING", "message": "no index", "hint": "Make one."}
    rest.on("GET", MESSAGES, listed(a_voice(notice), a_voice({"message": "done"}, database="b")))

    _, out, err = muster("run", "results", "nightly", "-o", "tsv")

    assert "no index" not in out
    assert err.splitlines() == [
        "fleet-1/a: WARNING: no index",
        "fleet-1/a:   hint: Make one.",
        "fleet-1/b: NOTICE: done",
    ]


def test_what_many_targets_say_in_the_same_words_is_told_once(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["fleet-1", "a", None, 1])))
    notice = {"severity": "WARNING", "message": "no index", "hint": "Make one."}
    voices = [a_voice(notice, database=f"t{n}") for n in range(60)]
    rest.on("GET", MESSAGES, listed(*voices))

    assert muster("run", "results", "nightly", "-o", "tsv")[2].splitlines() == [
        "fleet-1/t0 and 59 other targets: WARNING: no index",
        "fleet-1/t0 and 59 other targets:   hint: Make one.",
    ]


def test_of_many_notices_the_first_are_told_and_how_to_read_the_others(muster, rest):
    rest.on("GET", RESULTS, sets(a_page(["fleet-1", "a", None, 1])))
    rest.on("GET", MESSAGES, listed(a_voice(*({"message": f"{n}"} for n in range(30)))))

    err = muster("run", "results", "nightly")[2].splitlines()

    assert len(err) == 21 and err[-1] == f"There are more: muster run messages {RUN_ID}"


def test_messages_are_listed_whole(muster, rest):
    notice = {"severity": "NOTICE", "sqlstate": "00000", "message": "two\nlines"}
    rest.on("GET", MESSAGES, listed(a_voice(notice)))

    out = muster("run", "messages", "nightly", "--step", "main", "-o", "tsv")[1]

    assert out.splitlines() == [
        "step\tserver\tdatabase\tschema\tattempt\tseverity\tsqlstate\tmessage",
        "main\tfleet-1\ta\t\t1\tNOTICE\t00000\ttwo\\nlines",
    ]
    assert rest.asked(MESSAGES) == [{"step": "main"}]


def test_targets_that_said_nothing_are_told(muster, rest):
    rest.on("GET", MESSAGES, listed())

    assert muster("run", "messages", "nightly")[1].splitlines()[-1] == "No target sent a notice."


def test_a_query_and_yaml_get_the_same_objects_as_json(muster, rest):
    rest.on("GET", RESULTS, a_page(["s", "a", None, 1], ["s", "b", None, 2]))
    rest.on("GET", f"{RUN}/commandTags", listed())

    listed_ = muster("run", "results", "nightly", "-o", "json", "--query", "[?n>`1`]")[1]
    ndjson = muster("run", "results", "nightly", "-o", "ndjson", "--query", "[].n")[1]
    written = muster("run", "results", "nightly", "-o", "yaml")[1]

    row = {"target_server": "s", "target_database": "b", "target_schema": None, "n": 2}
    assert json.loads(listed_) == [row]
    assert ndjson == "1\n2\n"
    assert yaml.safe_load(written)[1] == row
