"""The verify option of a step: a query that says whether the step's effect is there, and what it must return.

Values are compared as text: that of the target is PostgreSQL's text output, except that a boolean is `true` or `false`;
that of the option is the text itself, or the JSON text of a number or boolean.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

TIMEOUT = 60  # seconds
MAX_SHOWN = 200  # characters of a value in a message
BOOLEAN = "boolean"

# What is known about a script that is not sent again: the next attempt begins with the verify query. With `verified`
# the query held, or there is none: the next attempt writes the output.
COMMITTED, UNKNOWN, VERIFIED = "committed", "unknown", "verified"
ScriptOutcome = Literal["committed", "unknown", "verified"]


class VerifyReply(NamedTuple):
    """The rows that a verify query returned."""

    rows: int
    types: Sequence[str]  # of the columns
    first: Sequence[str | None] = ()  # the first row, as text


class Verify(msgspec.Struct, frozen=True, rename="camel"):
    """options.verify"""

    sql: str
    expect: Literal["nonEmpty", "empty", "true", "value"] = "nonEmpty"
    value: str | bool | int | float | None = None
    skip_if_holds: bool = False
    timeout_seconds: int = TIMEOUT

    @property
    def text(self) -> str:
        """The value with which the first column is compared."""
        value = self.value
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    @property
    def expected(self) -> str:
        """For messages."""
        return {
            "nonEmpty": "at least one row",
            "empty": "no row",
            "true": "one row with the value true",
            "value": f"one row with the value {shown(self.text)}",
        }[self.expect]

    def holds(self, reply: VerifyReply) -> bool:
        match self.expect:
            case "nonEmpty":
                return reply.rows > 0
            case "empty":
                return reply.rows == 0
            case "true":
                return reply.rows == 1 and [*reply.types] == [BOOLEAN] and reply.first[0] == "true"
            case _:
                return reply.rows == 1 and bool(reply.first) and reply.first[0] == self.text


def received(reply: VerifyReply) -> str:
    """What came back, for messages; bounded."""
    if reply.rows != 1 or not reply.first:
        return "no row" if not reply.rows else f"{reply.rows} row{'s' * (reply.rows != 1)}"
    value, columns = reply.first[0], len(reply.types)
    more = "" if columns == 1 else f" in the first of {columns} columns"
    return f"one row with the value {'NULL' if value is None else shown(value)}{more}"


def shown(value: str) -> str:
    text = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…"
    return f"'{text}'"
