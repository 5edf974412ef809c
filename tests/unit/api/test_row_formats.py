"""Rows as CSV and NDJSON: what a reader of the file gets is what the target returned."""

import csv
import io
import json
from decimal import Decimal

import pytest

from api import row_formats
from api.request_context import RequestContext
from muster.core.clock import Clock
from muster.core.errors import InvalidRequest
from workflows.result_rows import Part, distinct

AWKWARD = ["", "a,b", 'say "hi"', "two\nlines", "cr\rlf\n", " padded ", "=1+1", "ä€😀", "plain"]


def a_request(accept: str = "", **query: str) -> RequestContext:
    headers = [(b"accept", accept.encode())] if accept else []
    scope = {"headers": headers, "method": "GET", "raw_path": b"/", "scheme": "http"}
    context = RequestContext(scope, Clock())
    context.query = query
    return context


def written(form, columns, *parts: Part) -> str:
    body = row_formats.header(form, columns) + b"".join(row_formats.chunks(form, columns, parts))
    return body.decode()


def test_a_csv_reader_reads_what_was_written():
    part = Part(["n", "text"], [[n, text] for n, text in enumerate(AWKWARD)])

    text = written("csv", ["n", "text"], part)

    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert read == [["n", "text"], *([str(n), text] for n, text in enumerate(AWKWARD))]


def test_null_and_an_empty_string_differ_in_csv():
    part = Part(["a", "b", "c"], [[None, "", "x"]])

    assert written("csv", ["a", "b", "c"], part) == 'a,b,c\r\n,"",x\r\n'


def test_values_keep_their_digits():
    row = [True, False, 9007199254740993, 0.1, Decimal("1.000000000000000000001"), {"a": [1, None]}]
    names = [str(place) for place in range(len(row))]

    line = written("csv", names, Part(names, [row])).splitlines()[1]

    assert line == 'true,false,9007199254740993,0.1,1.000000000000000000001,"{""a"":[1,null]}"'
    assert written("ndjson", names, Part(names, [row])).splitlines() == [
        '{"0":true,"1":false,"2":9007199254740993,"3":0.1,"4":1.000000000000000000001,'
        '"5":{"a":[1,null]}}'
    ]


def test_columns_meet_by_name_in_csv_and_stay_apart_in_ndjson():
    one, other = Part(["t", "a", "b"], [["x", 1, 2]]), Part(["t", "b", "c"], [["y", 3, 4]])
    columns = ["t", "a", "b", "c"]

    assert written("csv", columns, one, other) == "t,a,b,c\r\nx,1,2,\r\ny,,3,4\r\n"
    lines = [json.loads(line) for line in written("ndjson", columns, one, other).splitlines()]
    assert lines == [{"t": "x", "a": 1, "b": 2}, {"t": "y", "b": 3, "c": 4}]


def test_columns_of_one_name_are_told_apart():
    assert distinct(["a", "a", "a_2", "b", "a"]) == ["a", "a_2", "a_2_2", "b", "a_3"]


def test_a_chunk_is_small_however_many_rows_there_are():
    part = Part(["text"], [["x" * 1000]] * 1000)

    sizes = [len(chunk) for chunk in row_formats.chunks("csv", ["text"], [part])]

    assert sum(sizes) == 1000 * 1002
    assert max(sizes) < row_formats.CHUNK + 1002


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/html", "json"),
        ("text/csv", "csv"),
        ("Text/CSV; charset=utf-8", "csv"),
        ("application/x-ndjson", "ndjson"),
        ("application/json, text/csv", "json"),
        ("application/json;q=0.5, text/csv;q=0.9", "csv"),
        ("text/csv;q=0", "json"),
        ("text/csv;q=x", "json"),
    ],
)
def test_the_format_is_what_accept_prefers(accept, form):
    assert row_formats.wanted(a_request(accept)) == form


def test_the_query_wins_over_accept():
    assert row_formats.wanted(a_request("text/csv", format="NDJSON")) == "ndjson"


@pytest.mark.parametrize("name", ["$top", "$skiptoken"])
def test_a_file_has_no_pages(name):
    with pytest.raises(InvalidRequest, match="is for JSON"):
        row_formats.refuse_paging(a_request(**{name: "1"}), "csv")
