"""Rows of results as CSV (RFC 4180) and as NDJSON, in small chunks."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from api.request_context import RequestContext
from api.response import encode
from muster.core.errors import InvalidRequest
from workflows.result_rows import Part

Form = Literal["json", "csv", "ndjson"]
FORMS: tuple[Form, ...] = ("json", "csv", "ndjson")
CSV, NDJSON = "text/csv", "application/x-ndjson"
MEDIA_TYPES: dict[str, Form] = {"application/json": "json", CSV: "csv", NDJSON: "ndjson"}
CONTENT_TYPES: dict[Form, bytes] = {
    "csv": b"text/csv; charset=utf-8; header=present",
    "ndjson": b"application/x-ndjson; charset=utf-8",
}
CHUNK = 64 * 1024  # bytes
QUOTED = re.compile(r'[",\r\n]')
SPACE_AROUND = re.compile(r"^\s|\s$")


def wanted(context: RequestContext) -> Form:
    """`format` wins over Accept; what Accept does not know of us is answered with JSON."""
    named = context.query.get("format")
    if named is not None:
        return next(form for form in FORMS if form == named.lower())
    best: tuple[float, Form] = (0.0, "json")
    for each in (context.header(b"accept") or "").split(","):
        media_type, *parameters = (part.strip().lower() for part in each.split(";"))
        form = MEDIA_TYPES.get(media_type)
        weight = _weight(parameters)
        if form is not None and weight > best[0]:
            best = weight, form
    return best[1]


def refuse_paging(context: RequestContext, form: Form) -> None:
    for name in ("$top", "$skiptoken"):
        if name in context.query:
            raise InvalidRequest(
                f"A file of format {form} has all rows: {name} is for JSON.",
                code="InvalidQueryParameter",
                target=name,
            )


def header(form: Form, columns: list[str]) -> bytes:
    """A CSV file begins with the names of all columns."""
    return f"{','.join(map(_quoted, columns))}\r\n".encode() if form == "csv" else b""


def chunks(form: Form, columns: list[str], parts: Iterable[Part]) -> Iterator[bytes]:
    lines = _csv_lines(columns, parts) if form == "csv" else _json_lines(parts)
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= CHUNK:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _csv_lines(columns: list[str], parts: Iterable[Part]) -> Iterator[bytes]:
    for part in parts:
        at = {name: place for place, name in enumerate(part.columns)}
        places = [at.get(name) for name in columns]
        for row in part.rows:
            cells = ("" if place is None else csv_cell(row[place]) for place in places)
            yield f"{','.join(cells)}\r\n".encode("utf-8", "replace")


def _json_lines(parts: Iterable[Part]) -> Iterator[bytes]:
    for part in parts:
        for row in part.rows:
            yield encode(dict(zip(part.columns, row, strict=True))) + b"\n"


def csv_cell(value: Any) -> str:
    """NULL is an empty cell without quotes, an empty string has quotes, as COPY writes them."""
    match value:
        case None:
            return ""
        case str():
            return _quoted(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case _:
            return _quoted(encode(value).decode())


def _quoted(text: str) -> str:
    if text and not QUOTED.search(text) and not SPACE_AROUND.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _weight(parameters: list[str]) -> float:
    for each in parameters:
        if each.startswith("q="):
            try:
                return float(each[2:])
            except ValueError:
                return 0.0
    return 1.0
