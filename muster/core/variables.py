r"""Variables of a script: `$(name)`, put in so that a value never ends the quotes it stands in.

`render("select '$(job_name)', $(attempt)", {"job_name": "O'Hara", "attempt": "2"})` is
`select 'O''Hara', 2`. A bare uuid gets quotes of its own. Comments are left alone. Text is not put
into a dollar-quoted body, nor into a literal that is code: there it would be read once more. In E'…'
a backslash keeps the text: `\$(name)`.

Plain literals are safe under `standard_conforming_strings = on`, which the session has to set.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from muster.core.errors import InvalidRequest
from muster.core.sqltext import LETTER, NAME, Kind, Problem, Token, place, tokens

UNKNOWN = "UnknownScriptVariable"
INVALID = "InvalidScriptVariable"
LABEL = re.compile(r"target_label\..+")
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")


class Shape(StrEnum):
    INTEGER = "an integer"
    UUID = "a uuid"
    TEXT = "text"


KNOWN = {
    "job_name": Shape.TEXT,
    "job_id": Shape.UUID,
    "job_version": Shape.INTEGER,
    "step_id": Shape.INTEGER,
    "step_name": Shape.TEXT,
    "job_execution_id": Shape.UUID,
    "job_execution_create_time": Shape.TEXT,
    "target_group_name": Shape.TEXT,
    "target_server_name": Shape.TEXT,
    "target_database_name": Shape.TEXT,
    "target_schema_name": Shape.TEXT,
    "attempt": Shape.INTEGER,
}
USE = re.compile(rf"\$\((?P<name>{NAME})\)")
USE_ESCAPED = re.compile(rf"\\.|{USE.pattern}", re.DOTALL)
TOUCHING = re.compile(rf"[{LETTER}0-9.$'\"]")
INTEGER = re.compile(r"[0-9]{1,19}")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
QUOTE_IT = "Write '$(…)' for a value and \"$(…)\" for a name."


class Use(msgspec.Struct, frozen=True):
    name: str
    start: int
    place: Kind  # what it stands in; VARIABLE when it stands bare

    @property
    def end(self) -> int:
        return self.start + len(self.name) + len("$()")


def variables(text: str) -> list[Use]:
    """Every use outside comments, in order: `variables("/* $(a) */ '$(b)'")` has b alone."""
    return [use for token in tokens(text) for use in _uses(token)]


def render(text: str, values: Mapping[str, str]) -> str:
    """The script for one target. Refuses a name without a value and a value that does not fit."""
    return "".join(_rendered(text, token, values) for token in tokens(text))


def spans(text: str, values: Mapping[str, str]) -> Iterator[tuple[Use, int, int]]:
    """Each use, and where its value begins and ends in the rendered text."""
    shift = 0
    for use in variables(text):
        start = use.start + shift
        end = start + len(_fitting(text, use, values))
        yield use, start, end
        shift = end - use.end


def problems(text: str, read: Iterable[Token]) -> Iterator[Problem]:
    """What can be known before there are values; an unknown name is reported once."""
    reported = set()
    for use in (use for token in read for use in _uses(token)):
        if use.name not in KNOWN and not LABEL.fullmatch(use.name):
            if use.name not in reported:
                near = difflib.get_close_matches(use.name.lower(), KNOWN, n=2)
                message = f"there is no variable $({use.name})."
                choices = f"Known are {', '.join(KNOWN)} and target_label.<name>."
                advice = f"Did you mean {' or '.join(near)}?" if near else choices
                yield Problem.at(text, use.start, UNKNOWN, message, advice)
            reported.add(use.name)
        elif why := _misplaced(text, use, KNOWN.get(use.name)):
            yield Problem.at(text, use.start, INVALID, f"$({use.name}) {why}.", _advice(use))


def in_code(text: str, read: Iterable[Token]) -> Iterator[Problem]:
    """Of literals that are code: only what is known to be an integer or a uuid may stand in them."""
    for use in (use for token in read for use in _uses(token)):
        if KNOWN.get(use.name, Shape.TEXT) is Shape.TEXT:
            why = f"$({use.name}) is text and stands in a literal that is code."
            yield Problem.at(text, use.start, INVALID, why, _advice(use))


def setting(name: str) -> str:
    """Under which a session has the variable; PostgreSQL takes letters, digits and underscores, and no digit first."""
    kind, dot, label = name.partition(".")
    if not dot:
        return f"muster.{name}"
    plain = NOT_IN_A_NAME.sub("_", label) or "_"
    return f"muster.{kind}.{'_' * plain[0].isdigit()}{plain}"


def masked(read: Iterable[Token]) -> str:
    """The text with constants of the same length for bare variables: something to parse."""
    return "".join(_mask(token) if token.kind is Kind.VARIABLE else token.text for token in read)


def _uses(token: Token) -> Iterator[Use]:
    if token.kind is Kind.COMMENT or "$(" not in token.text:
        return
    pattern = USE_ESCAPED if token.kind is Kind.ESCAPED else USE
    for match in pattern.finditer(token.text, token.opening, len(token.text) - token.closing):
        if match["name"]:
            yield Use(match["name"], token.start + match.start(), token.kind)


def _misplaced(text: str, use: Use, shape: Shape | None) -> str:
    """Why no value of that shape can stand there; None for a label, whose values have any."""
    if use.place is Kind.UNICODE:
        return "stands in a string with Unicode escapes, which can't be filled safely"
    if use.place is Kind.BODY and shape is Shape.TEXT:
        return (
            "is text and stands in a dollar-quoted body, where only integers and uuids are put in"
        )
    if use.place is not Kind.VARIABLE:
        return ""
    if shape is Shape.TEXT:
        return "is text, and only integers and uuids may stand without quotes"
    touched = TOUCHING.match(text, use.end) or TOUCHING.match(text[use.start - 1 : use.start])
    return "touches the word or quotes beside it" if touched else ""


def _advice(use: Use) -> str:
    if use.place in {Kind.VARIABLE, Kind.UNICODE}:
        return QUOTE_IT
    return f"Read current_setting('{setting(use.name)}', true) there."


def _rendered(text: str, token: Token, values: Mapping[str, str]) -> str:
    parts, at = [], token.start
    for use in _uses(token):
        parts += [text[at : use.start], _fitting(text, use, values)]
        at = use.end
    rendered = "".join((*parts, text[at : token.end]))
    if parts and token.kind is Kind.BODY:
        close = rendered.find(token.text[: token.opening], token.opening)
        if close != (len(rendered) - token.closing if token.closing else -1):
            why = "A value would close the dollar-quoted body it is put into."
            raise InvalidRequest(f"{place(text, token.start)}: {why}", code=INVALID)
    return rendered


def _fitting(text: str, use: Use, values: Mapping[str, str]) -> str:
    """The value in the form that the place asks for."""
    value = values.get(use.name)
    if value is None:
        raise _refuse(text, use, "has no value here", UNKNOWN)
    if "\0" in value:
        raise _refuse(text, use, "has a value with a NUL character")
    integer, uuid = INTEGER.fullmatch(value), UUID.fullmatch(value)
    shape = Shape.INTEGER if integer else Shape.UUID if uuid else Shape.TEXT
    if why := _misplaced(text, use, shape):
        raise _refuse(text, use, f"{why}. {_advice(use)}".rstrip("."))
    match use.place:
        case Kind.LITERAL:
            return value.replace("'", "''")
        case Kind.ESCAPED:
            return value.replace("\\", "\\\\").replace("'", "''")
        case Kind.IDENTIFIER:
            return value.replace('"', '""')
        case Kind.VARIABLE if uuid:
            return f"'{value}'"
        case _:
            return value


def _mask(token: Token) -> str:
    width = len(token.text)
    if KNOWN.get(token.text[2:-1]) is Shape.UUID:
        return "'" + "0" * (width - 2) + "'"
    return "1".zfill(width)


def _refuse(text: str, use: Use, why: str, code: str = INVALID) -> InvalidRequest:
    return InvalidRequest(f"{place(text, use.start)}: $({use.name}) {why}.", code=code)
