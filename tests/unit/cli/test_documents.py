"""Forms for scripts, and --query: what it takes is printed in every form, what is wrong is said with its place."""

import argparse
import csv
import io
import json

import pytest
import yaml

from muster.cli import documents, output
from muster.cli.client import Refused
from muster.cli.output import Table

DOCUMENT = {"value": [{"name": "a", "n": 1, "tag": None}, {"name": "b, c", "n": 2, "more": [1]}]}
TABLE = Table(("name", "n"), [["a", 1], ["b, c", 2]])


def shown(capsys, form, query=None, document=DOCUMENT, table=TABLE):
    options = argparse.Namespace(output=form, query=query and documents.compiled(query))
    output.show(options, document, table, notes=["a note"])
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["json", "jsonc", "yaml"])
def test_a_document_comes_back_from_every_form_of_documents(form, capsys):
    read = yaml.safe_load if form == "yaml" else json.loads

    assert read(shown(capsys, form)) == DOCUMENT
    assert read(shown(capsys, form, "value[1].name")) == "b, c"
    assert read(shown(capsys, form, "value[5]")) is None


def test_yaml_keeps_the_order_and_every_letter(capsys):
    document = {"z": "ä", "a": ["yes", "2026-01-01", 1]}

    assert shown(capsys, "yaml", document=document) == "z: ä\na:\n- 'yes'\n- '2026-01-01'\n- 1\n"


def test_csv_is_quoted_where_it_has_to_be_and_has_the_columns_of_tsv(capsys):
    cells = ["x,y", 'say "a"', "l1\nl2", " led", "", None, True, 1.5, {"a": 1}]
    table = Table([f"c{n}" for n in range(len(cells))], [cells], optional=["c5"], hidden=["c6"])

    text = shown(capsys, "csv", table=table)

    assert text == (
        "c0,c1,c2,c3,c4,c5,c6,c7,c8\r\n"
        '"x,y","say ""a""","l1\nl2"," led","",,true,1.5,"{""a"": 1}"\r\n'
    )
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[1][:4] == cells[:4]
    assert rows[0] == shown(capsys, "tsv", table=table).splitlines()[0].split("\t")


@pytest.mark.parametrize(
    ("query", "table", "tsv", "csv"),
    [
        (
            "value[].{name: name, n: n}",
            "name  n\na     1\nb, c  2\n",
            "name\tn\na\t1\nb, c\t2\n",
            'name,n\r\na,1\r\n"b, c",2\r\n',
        ),
        ("value[].name", "a\nb, c\n", "a\nb, c\n", 'a\r\n"b, c"\r\n'),
        ("value[].[name, n]", "a     1\nb, c  2\n", "a\t1\nb, c\t2\n", 'a,1\r\n"b, c",2\r\n'),
        ("value[0]", "name  n  tag\na     1\n", "name\tn\ttag\na\t1\t\n", "name,n,tag\r\na,1,\r\n"),
        ("value[1].n", "2\n", "2\n", "2\r\n"),
        ("value[?n > `5`]", "", "", ""),
        ("nothing", "", "", ""),
    ],
)
def test_a_query_makes_the_rows(query, table, tsv, csv, capsys):
    assert [shown(capsys, form, query) for form in ("table", "tsv", "csv")] == [table, tsv, csv]


def test_rows_of_different_objects_have_all_columns(capsys):
    assert shown(capsys, "tsv", "value") == "name\tn\ttag\tmore\na\t1\t\t\nb, c\t2\t\t[1]\n"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("value[?name='x']", "unexpected '=' at character 12 of value[?name='x']; == compares"),
        ("value[].{name", "it ends at character 13 where more is needed: value[].{name"),
        ("a b", "unexpected 'b' at character 3 of a b"),
        ("a == 'b", "''b' has no end at character 6 of a == 'b"),
        ("", "it is empty; a JMESPath expression is needed"),
        ("value[].lenght(@)", "there is no function 'lenght'; did you mean length"),
    ],
)
def test_a_wrong_query_is_refused_before_anything_is_done(muster, rest, query, message):
    code, out, err = muster("job", "list", "--query", query)

    assert (code, out) == (1, "")
    assert f"argument --query: {message}" in err
    assert rest.requests == []


def test_a_query_that_does_not_fit_the_answer_is_one_line(capsys):
    with pytest.raises(Refused, match=r"--query: In function length\(\), invalid type"):
        shown(capsys, "json", "length(value[0].n)")


def test_colours_of_jsonc_are_for_terminals_that_want_them(monkeypatch, terminal, capsys):
    document = {"a:": 'x": \\"1', "n": [-1.5, True, None]}
    assert "\x1b" not in shown(capsys, "jsonc", document=document)

    def on_terminal():
        out = terminal()["stdout"]
        options = argparse.Namespace(output="jsonc", query=None)
        output.show(options, document, TABLE)
        return out.getvalue()

    painted = on_terminal()
    assert '\x1b[34m"a:"\x1b[0m: ' in painted and "\x1b[36m-1.5\x1b[0m" in painted
    assert "\x1b[35mtrue\x1b[0m" in painted and "\x1b[35mnull\x1b[0m" in painted
    for code in (documents.KEY, documents.STRING, documents.NUMBER, documents.WORD, output.PLAIN):
        painted = painted.replace(code, "")
    assert json.loads(painted) == document
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal()
