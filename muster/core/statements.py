"""Statements of a script: where each begins and ends, and what its first words tell.

PostgreSQL's own grammar says where a statement ends, its first words say what it is. The syntax
tree is not asked for: libpg_query walks it by recursion, and a long chain of `||` ends the process.
Its scanner takes a time that grows with the square of the depth of comments and of the length of an
operator, so both are limited before it sees a text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import postgast

from muster.core import variables
from muster.core.sqltext import NESTING, TRIVIA, Kind, Token, tokens

HEAD = 200  # words of a statement that are looked at
LONGEST_WORD = 100  # characters of such a word
DEEPEST_COMMENT = 32
LONGEST_OPERATOR = 63  # characters, as PostgreSQL has it

NO = r"(?:\ =)?\ (?:false|off|0)\b"
ALONE = re.compile(
    rf"""
      vacuum\b
    | (?:create|drop)\ (?:database|tablespace)\b
    | create\ (?:unique\ )?index\ concurrently\b
    | drop\ index\ concurrently\b
    | reindex\ (?:\([^()]*\)\ )?(?:schema|database|system)\b
    | reindex\ (?:\([^()]*\)\ )?\w+\ concurrently\b
    | reindex\ \([^()]*\bconcurrently\b(?!{NO})
    | cluster(?:\ verbose|\ \([^()]*\))?$
    | alter\ system\b
    | alter\ database\ \S+\ (?:set\ |with\ )?tablespace\b
    | alter\ table\b.*\ detach\ partition\ .*\ concurrently$
    | create\ subscription\b(?!.*\b(?:connect|create_slot){NO})
    | drop\ subscription\b
    | alter\ subscription\ \S+\ refresh\b
    | alter\ subscription\ \S+\ (?:set|add|drop)\ publication\b(?!.*\brefresh{NO})
    | alter\ subscription\ \S+\ set\ \(.*\b(?:failover|two_phase)\b
    | discard\ all\b
    | (?:commit|rollback)\ prepared\b
    """,
    re.VERBOSE,
)
CONTROL = re.compile(
    r"(?:begin|end|abort|start transaction|prepare transaction)\b"
    r"|commit\b(?! prepared\b)"
    r"|rollback\b(?! prepared\b)(?!(?: work| transaction)? to\b)"
)
LASTING = re.compile(
    r"set (?!local\b|constraints\b|transaction\b)|reset\b|(?:un)?listen\b|load\b|prepare (?!transaction\b)"
    r"|declare\b.* with hold\b|create (?:(?:global|local) )?temp(?:orary)?\b(?!.* on commit drop\b)"
    r"|.*\bpg_(?:try_)?advisory_lock(?:_shared)?\b"
)
ROUTINE = re.compile(r"create (?:or replace )?(?:function|procedure)\b")
AMBIGUOUS = "quotes that can be read in two ways"
OPERATOR = frozenset("~!@#^&|`?+-*/%<>=")


@dataclass(frozen=True, slots=True)
class Statement:
    text: str  # with the comments before it, without its semicolon
    start: int
    first: int  # offset of its first word
    head: str  # its first words, as the patterns here read them

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def transactional(self) -> bool:
        """Whether it can run inside a transaction, as far as the text shows."""
        return ALONE.match(self.head) is None

    @property
    def control(self) -> bool:
        """Whether it begins or ends a transaction. Savepoints do not."""
        return CONTROL.match(self.head) is not None

    @property
    def lasting(self) -> bool:
        """Whether the session is another one after its transaction, as far as the first words tell."""
        return LASTING.match(self.head) is not None


@dataclass(frozen=True, slots=True)
class Script:
    """A text and its statements; between them are only semicolons, spaces and comments.

    Where the grammar refuses the text, `refusal` says why, and the statements are only what the
    semicolons suggest: such a text goes to the server whole.
    """

    text: str
    statements: tuple[Statement, ...]
    refusal: str = ""
    position: int = 0  # offset of the refusal

    @property
    def parsed(self) -> bool:
        return not self.refusal

    @property
    def autocommit(self) -> bool:
        """Exactly one statement, and one that can't run inside a transaction."""
        return len(self.statements) == 1 and not self.statements[0].transactional


def split(text: str) -> Script:
    """Never fails and never drops a character. Variables may stand in the text."""
    return split_tokens(text, list(tokens(text)))


@dataclass(frozen=True, slots=True)
class Excess:
    """More than the grammar may be asked to read."""

    offset: int
    message: str


def excess(read: Iterable[Token]) -> Excess | None:
    """The first comment that is too deep, or operator that is too long."""
    run = 0
    for token in read:
        run = run + 1 if token.kind is Kind.SYMBOL and token.text in OPERATOR else 0
        if run > LONGEST_OPERATOR:
            message = f"more than {LONGEST_OPERATOR} characters of operators stand side by side"
            return Excess(token.end - run, message)
        if token.kind is Kind.COMMENT and _depth(token.text) > DEEPEST_COMMENT:
            return Excess(token.start, f"comments are nested more than {DEEPEST_COMMENT} deep")
    return None


def _depth(comment: str) -> int:
    if not comment.startswith("/*"):
        return 0
    depth = deepest = 0
    for mark in NESTING.finditer(comment):
        depth += 1 if mark[0] == "/*" else -1
        deepest = max(deepest, depth)
    return deepest


def across_comments(read: Iterable[Token]) -> Iterator[Token]:
    """Literals that go on after a comment: each is one to the server and two to the grammar."""
    literal: Token | None = None  # the last one, while only spaces and comment lines follow it
    commented = False
    for token in read:
        if token.kind is Kind.SPACE:
            continue
        if token.kind is Kind.COMMENT and token.text.startswith("--"):
            commented = True
            continue
        if literal and commented and token.text.startswith("'"):
            yield literal
        literal, commented = token if token.opening and token.text.endswith("'") else None, False


def split_tokens(text: str, read: list[Token]) -> Script:
    try:
        cuts = _cuts_by_grammar(read)
    except postgast.PgQueryError as error:
        guess = tuple(_statements(read, _cuts_by_semicolons(read)))
        # In characters, unlike the other offsets of the library.
        return Script(text, guess, error.message, max(error.cursorpos - 1, 0))
    return Script(text, tuple(_statements(read, cuts)))


def _cuts_by_grammar(read: list[Token]) -> list[int]:
    """Where each statement ends; a piece begins with the first word after the last cut."""
    if too_much := excess(read):
        raise postgast.PgQueryError(too_much.message, cursorpos=too_much.offset + 1)
    if literal := next(across_comments(read), None):
        raise postgast.PgQueryError(AMBIGUOUS, cursorpos=literal.start + 1)
    masked = variables.masked(read)
    if "\0" in masked:  # where the library would stop reading
        raise postgast.PgQueryError("a NUL character", cursorpos=masked.index("\0") + 1)
    starts = (token.start for token in read if token.kind not in TRIVIA and token.text != ";")
    cuts = [0]
    for piece in postgast.split(masked):
        first = next((start for start in starts if start >= cuts[-1]), len(masked))
        if not masked.startswith(piece, first):
            raise postgast.PgQueryError(AMBIGUOUS, cursorpos=first + 1)
        cuts.append(first + len(piece))
    return cuts


def _cuts_by_semicolons(read: list[Token]) -> Iterator[int]:
    """As psql does it: not inside parentheses, nor between BEGIN and END of a routine."""
    parentheses = blocks = 0
    words: list[str] = []
    for token in read:
        if token.kind is Kind.WORD:
            words.append(token.text.lower())
            if words[-1] in {"begin", "case"} and ROUTINE.match(" ".join(words[:4])):
                blocks += 1
            elif words[-1] == "end" and blocks:
                blocks -= 1
        elif token.text == "(":
            parentheses += 1
        elif token.text == ")":
            parentheses = max(0, parentheses - 1)
        elif token.text == ";" and not parentheses and not blocks:
            words.clear()
            yield token.start


def _statements(read: list[Token], cuts: Iterable[int]) -> Iterator[Statement]:
    ends = frozenset(cuts)
    group: list[Token] = []
    first = None
    for token in read:
        if token.start in ends and first is not None:
            yield _statement(group, first)
            group, first = [], None
        if first is None and token.text == ";":
            group = []
        elif group or token.kind is not Kind.SPACE:
            group.append(token)
            if first is None and token.kind not in TRIVIA:
                first = token.start
    if first is not None:
        yield _statement(group, first)


def _statement(group: list[Token], first: int) -> Statement:
    if group[-1].kind is Kind.SPACE:
        group = group[:-1]
    head = " ".join(islice((word[:LONGEST_WORD] for word, _ in words(group)), HEAD))
    return Statement("".join(token.text for token in group), group[0].start, first, head)


def words(read: Iterable[Token]) -> Iterator[tuple[str, int]]:
    """What a pattern reads, quoted things as their quotes, each with its depth in parentheses."""
    depth = 0
    for token in read:
        if token.kind in TRIVIA:
            continue
        depth -= token.text == ")"
        quoted = '"' if token.text.endswith('"') else "'"
        yield quoted if token.opening else token.text.lower(), depth
        depth += token.text == "("
