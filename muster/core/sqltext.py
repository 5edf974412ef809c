"""SQL text as PostgreSQL's scanner cuts it: every character is in exactly one token.

`[t.kind for t in tokens("select '$(x)'")]` is `[WORD, SPACE, LITERAL]`. Beside the scanner's own
tokens there is one more, the variable `$(name)`, even right after a word, where PostgreSQL reads
the `$` as the word's last letter; inside quotes it is part of the quoted token.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from muster.core.errors import FieldError

NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,127}"
LETTER = r"A-Za-z_\x80-\U0010ffff"  # to the scanner every byte above ASCII is a letter


class Kind(StrEnum):
    SPACE = "space"
    COMMENT = "comment"
    LITERAL = "literal"  # '…', also with B, X or N before it
    ESCAPED = "escaped literal"  # E'…'
    UNICODE = "unicode escapes"  # U&'…' and U&"…"
    IDENTIFIER = "quoted identifier"  # "…"
    BODY = "dollar-quoted body"
    VARIABLE = "variable"
    NUMBER = "number"
    WORD = "word"
    SYMBOL = "symbol"


TRIVIA = (Kind.SPACE, Kind.COMMENT)


class Token(msgspec.Struct, frozen=True, gc=False):
    kind: Kind
    start: int
    text: str
    opening: int = 0  # how many characters of the text are its quotes
    closing: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def inside(self) -> str:
        return self.text[self.opening : len(self.text) - self.closing]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a script, where, and what to do about it."""

    offset: int
    code: str
    message: str  # begins with the place
    advice: str

    @classmethod
    def at(cls, text: str, offset: int, code: str, message: str, advice: str) -> "Problem":
        return cls(offset, code, f"{place(text, offset)}: {message}", advice)

    def error(self, target: str) -> FieldError:
        return FieldError(target, f"{self.message} {self.advice}", self.code)


def place(text: str, offset: int) -> str:
    """Where that is for people: "Line 2, column 5"."""
    line_start = text.rfind("\n", 0, offset) + 1
    line = text.count("\n", 0, offset) + 1
    return f"Line {line}, column {offset - line_start + 1}"


OPENING = re.compile(
    rf"""
      (?P<space>[ \t\n\r\f\v]+)
    | (?P<comment>--[^\n\r]*)
    | (?P<block>/\*)
    | (?P<literal>[bBxXnN]?')
    | (?P<escaped>[eE]')
    | (?P<unicode>[uU]&['"])
    | (?P<identifier>")
    | (?P<body>\$(?:[{LETTER}][{LETTER}0-9]*)?\$)
    | (?P<variable>\$\({NAME}\))
    | (?P<number>\$?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[{LETTER}](?:[{LETTER}0-9]|\$(?!\({NAME}\)))*)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
WHOLE = {
    "space": Kind.SPACE,
    "comment": Kind.COMMENT,
    "variable": Kind.VARIABLE,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
QUOTED = {
    "literal": Kind.LITERAL,
    "escaped": Kind.ESCAPED,
    "unicode": Kind.UNICODE,
    "identifier": Kind.IDENTIFIER,
}
REST = {  # from after the opening quote up to the closing one, or to the end of the text
    "'": re.compile(r"(?:[^']++|'')*+"),
    '"': re.compile(r'(?:[^"]++|"")*+'),
    Kind.ESCAPED: re.compile(r"(?:[^'\\]++|\\.|'')*+", re.DOTALL),
}
# Literals with a line break between them are one: the second inherits the first one's escapes.
CONTINUED = re.compile(
    r"(?>(?:[ \t\f\v]|--[^\n\r]*+)*)[\n\r](?>(?:[ \t\n\r\f\v]++|--[^\n\r]*+[\n\r])*)'"
)
NESTING = re.compile(r"/\*|\*/")


def tokens(text: str) -> Iterator[Token]:
    """Total: what is never closed runs to the end of the text."""
    at = 0
    inherited = Kind.LITERAL
    while match := OPENING.match(text, at):
        group = match.lastgroup or ""
        opening, inside = match[0], match.end()
        if kind := WHOLE.get(group):
            token = Token(kind, at, opening)
        elif group == "block":
            token = Token(Kind.COMMENT, at, text[at : _comment_end(text, inside)])
        elif group == "body":
            end = text.find(opening, inside)
            token = _quoted(Kind.BODY, text, at, opening, len(text) if end < 0 else end, opening)
        else:
            kind = inherited if opening == "'" else QUOTED[group]
            quote = opening[-1]
            rest = REST.get(kind, REST[quote]).match(text, inside)
            assert rest is not None
            token = _quoted(kind, text, at, opening, rest.end(), quote)
            continued = quote == "'" and CONTINUED.match(text, token.end)
            inherited = kind if continued else Kind.LITERAL
        yield token
        at += len(token.text)


def _quoted(kind: Kind, text: str, start: int, opening: str, inside_end: int, close: str) -> Token:
    closing = len(close) if text.startswith(close, inside_end) else 0
    return Token(kind, start, text[start : inside_end + closing], len(opening), closing)


def _comment_end(text: str, at: int) -> int:
    depth = 1
    for mark in NESTING.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(text)
