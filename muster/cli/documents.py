"""What a script reads: the API's answer, or what a JMESPath expression takes from it, in a form of its own."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from muster.cli.client import Refused
from muster.cli.output import PLAIN, Table, clean, has_colour, lines, room, text
from muster.cli.typed import did_you_mean

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult

KEY, STRING, NUMBER, WORD = "\x1b[34m", "\x1b[32m", "\x1b[36m", "\x1b[35m"
TOKEN = re.compile(
    r'(?P<key>"(?:\\.|[^"\\])*"(?=:))|(?P<string>"(?:\\.|[^"\\])*")|(?P<rest>[\w.+-]+)'
)
QUOTED_IN_CSV = re.compile(r'[",\r\n]|^\s|\s$|^$')


def compiled(expression: str) -> "ParsedResult":
    """Refused in one line that says where the expression is wrong."""
    import jmespath
    from jmespath import exceptions, functions

    try:
        query = jmespath.compile(expression)
    except exceptions.ParseError as error:
        raise argparse.ArgumentTypeError(_where(expression, error)) from error
    except exceptions.EmptyExpressionError as error:
        raise argparse.ArgumentTypeError("it is empty; a JMESPath expression is needed") from error
    known = functions.Functions.FUNCTION_TABLE
    for name in _functions(query.parsed):
        if name not in known:
            near = did_you_mean(name, known)
            raise argparse.ArgumentTypeError(f"there is no function '{name}'{near}")
    return query


def taken(options: argparse.Namespace, document: Any) -> Any:
    """The document, or what --query takes from it."""
    from jmespath import exceptions

    try:
        return options.query.search(document)
    except (exceptions.ArityError, exceptions.JMESPathTypeError) as error:
        raise Refused(f"--query: {error}") from error


def write(options: argparse.Namespace, document: Any, table: Table) -> None:
    """`table` has the rows of the forms that have rows, unless the query makes others."""
    headed = True
    if options.query:
        document = taken(options, document)
        headed, table = rows_of(document)
    match options.output:
        case "json":
            print(json.dumps(document, ensure_ascii=False, indent=2))
        case "jsonc":
            print(_coloured(json.dumps(document, ensure_ascii=False, indent=2)))
        case "yaml":
            print(as_yaml(document), end="")
        case "ndjson":
            for each in document if isinstance(document, list) else [document]:
                print(json.dumps(each, ensure_ascii=False))
        case form:
            _write_rows(form, table, headed=headed)


def write_one(options: argparse.Namespace, document: Any, row: Sequence[Any]) -> None:
    """Of a stream: documents or rows one after another, without a header."""
    table = Table([""] * len(row), [row])
    if options.query:
        document = taken(options, document)
        _, table = rows_of(None if document is None else [document])
    match options.output:
        case "json":
            print(json.dumps(document, ensure_ascii=False))
        case "jsonc":
            print(_coloured(json.dumps(document, ensure_ascii=False)))
        case "yaml":
            print(f"---\n{as_yaml(document)}", end="")
        case form:
            _write_rows(form, table, headed=False)
    sys.stdout.flush()


def _write_rows(form: str, table: Table, *, headed: bool) -> None:
    if form == "csv":
        sys.stdout.buffer.write(as_csv(table, headed=headed).encode())
        sys.stdout.buffer.flush()
    elif form == "tsv":
        for row in (table.columns, *table.rows) if headed else table.rows:
            print("\t".join(map(_field, row)))
    else:
        shown = lines(table, room(sys.stdout), coloured=has_colour(sys.stdout))
        for line in shown if headed else shown[1:]:
            print(line)


def rows_of(result: Any) -> tuple[bool, Table]:
    """Objects are rows with a header; lists and plain values are rows without one."""
    items = result if isinstance(result, list) else [] if result is None else [result]
    if items and all(isinstance(each, dict) for each in items):
        columns = list(dict.fromkeys(name for each in items for name in each))
        return True, Table(columns, [[each.get(name) for name in columns] for each in items])
    rows = [each if isinstance(each, list) else [each] for each in items]
    width = max(map(len, rows), default=0)
    return False, Table([""] * width, [[*row, *[None] * (width - len(row))] for row in rows])


def as_yaml(document: Any) -> str:
    import yaml

    made: str = yaml.dump(
        document,
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        allow_unicode=True,
        sort_keys=False,
    )
    return made.removesuffix("...\n")  # the end of a document that is one word


def as_csv(table: Table, *, headed: bool = True) -> str:
    """By RFC 4180; null is an empty field, an empty text is quoted."""
    rows = (table.columns, *table.rows) if headed else table.rows
    return "".join(",".join(map(_quoted, row)) + "\r\n" for row in rows)


def _where(expression: str, error: Any) -> str:
    at = error.lex_position
    if at >= len(expression):
        return f"it ends at character {at} where more is needed: {expression}"
    found = f"'{error.token_value}'"
    is_open = str(getattr(error, "message", "")).startswith("Unclosed")
    what = f"{found} has no end" if is_open else f"unexpected {found}"
    hint = "; == compares" if found == "'='" else ""
    return f"{what} at character {at + 1} of {expression}{hint}"


def _functions(node: Any) -> Iterator[str]:
    if node["type"] == "function_expression":
        yield node["value"]
    for child in node["children"]:
        yield from _functions(child)


def _coloured(json_text: str) -> str:
    if not has_colour(sys.stdout):
        return json_text

    def painted(token: re.Match[str]) -> str:
        word = token[0]
        if token.lastgroup == "rest":
            return f"{NUMBER if word[0] in '-0123456789' else WORD}{word}{PLAIN}"
        return f"{KEY if token.lastgroup == 'key' else STRING}{word}{PLAIN}"

    return TOKEN.sub(painted, json_text)


def _field(value: Any) -> str:
    """As COPY writes it: a tab or a line end in a value never ends it."""
    content = text(value)
    for plain, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        content = content.replace(plain, escaped)
    return clean(content)


def _quoted(value: Any) -> str:
    if value is None:
        return ""
    content = text(value)
    if not QUOTED_IN_CSV.search(content):
        return content
    return '"' + content.replace('"', '""') + '"'
