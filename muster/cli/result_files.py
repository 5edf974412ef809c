"""Rows as JSON, CSV and NDJSON on stdout: written as they arrive, never all in memory."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from muster.cli.client import Api, Query, text_lines
from muster.cli.documents import as_csv
from muster.cli.output import Table

FORMS = ("json", "csv", "ndjson")


def is_file(options: argparse.Namespace) -> bool:
    """Whether the rows pass through as they come; a query needs all of them."""
    return options.output in FORMS and options.query is None


def copy(api: Api, path: str, query: Query, form: str) -> bool:
    """The rows under `path`; whether rows of some targets are missing since a host keeps only so many."""
    wanted = {**query, "format": "csv" if form == "csv" else "ndjson"}
    with api.stream(path, wanted) as answer:
        if form == "json":
            _write_list(text_lines(answer.iter_bytes()))
        else:
            for chunk in answer.iter_bytes():
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        return bool(int(answer.headers.get("muster-truncated-targets", 0)))


def write(form: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The same for rows that are there already."""
    if form == "csv":
        sys.stdout.buffer.write(as_csv(Table(columns, list(rows))).encode())
        sys.stdout.buffer.flush()
        return
    lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows)
    if form == "json":
        _write_list(lines)
        return
    for line in lines:
        print(line)


def _write_list(lines: Iterable[str]) -> None:
    """Each line is an object, and stays as it is: its numbers keep their digits."""
    separator = "["
    for line in lines:
        print(f"{separator}\n  {line}", end="")
        separator = ","
    print("[]" if separator == "[" else "\n]")
