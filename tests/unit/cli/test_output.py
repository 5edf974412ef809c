"""Tables fit, scripts get the same columns always, and nothing in a value commands a terminal."""

import argparse
import json

import pytest

from muster.cli import output
from muster.cli.output import Table

TABLE = Table(("name", "count", "note"), [["a", 1, None], ["long name", 20, "x"]])


def test_columns_line_up_and_numbers_stand_right():
    assert output.lines(TABLE, None) == [
        "name       count  note",
        "a              1",
        "long name     20  x",
    ]


def test_a_table_is_as_wide_as_the_terminal_and_ids_stay_whole():
    table = Table(("id", "message"), [["12345678", "m" * 200]])

    told = output.lines(table, 40)

    assert {len(line) <= 40 for line in told} == {True}
    assert told[1].startswith("12345678  mmm") and told[1].endswith("m…")


def test_a_command_is_never_cut_since_it_is_copied():
    table = Table(("message", "next"), [["m" * 50, "muster run why 12345678"]], whole=("next",))

    assert output.lines(table, 35)[1] == "m" * 9 + "…  muster run why 12345678"


def test_a_narrow_terminal_does_not_make_it_fail():
    assert len(output.lines(Table(("a", "b"), [["x" * 20, "y" * 20]]), 3)) == 2


def test_wide_and_combining_characters_take_their_places():
    told = output.lines(Table(("name", "x"), [["日本", 1], ["e\u0301", 2]]), None)

    assert [output.measure(line) for line in told] == [7, 7, 7]
    assert output.cut("日本語", 4) == "日…"


def test_what_a_stranger_wrote_does_not_reach_the_terminal():
    told = output.lines(Table(("message",), [["a\x1b[2Jb\nc\x07"]]), None)

    assert told[1] == "a\\x1b[2Jb c\\x07"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ""), (True, "true"), ({"a": [1, "ä"]}, '{"a": [1, "ä"]}'), (1.5, "1.5"), ("x", "x")],
)
def test_values_have_one_form(value, expected):
    assert output.text(value) == expected


def show(form, table, capsys, notes=()):
    output.show(argparse.Namespace(output=form, query=None), {"as": "answered"}, table, notes=notes)
    return capsys.readouterr().out


def test_tsv_has_all_columns_always_and_escapes_what_would_break_rows(capsys):
    table = Table(("a", "b", "c"), [["x\ty", None, "l1\nl2\\"]], optional=("b",))

    assert show("tsv", table, capsys, ["a note"]) == "a\tb\tc\nx\\ty\t\tl1\\nl2\\\\\n"


def test_json_is_what_the_api_answered(capsys):
    assert json.loads(show("json", TABLE, capsys, ["a note"])) == {"as": "answered"}


def test_people_see_no_empty_columns_and_the_notes(capsys):
    table = Table(("a", "b"), [["x", None]], optional=("b",))

    assert show("table", table, capsys, ["one\x1bnote"]) == "a\nx\none\\x1bnote\n"


def test_what_is_for_scripts_people_do_not_see(capsys):
    table = Table(("a", "b", "n"), [["x", "y", 0]], optional=("n",), hidden=("b",))

    assert show("table", table, capsys) == "a\nx\n"
    assert show("tsv", table, capsys) == "a\tb\tn\nx\ty\t0\n"


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch, terminal, capsys):
    table = Table(("state",), [["Failed"]])
    assert "\x1b" not in show("table", table, capsys)

    out = terminal()["stdout"]
    output.show(argparse.Namespace(output="table", query=None), {}, table)
    assert "\x1b[31mFailed\x1b[0m" in out.getvalue()
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert not output.has_colour(out)
