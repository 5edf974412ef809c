"""Scripts: which statements they have, whether those can share a transaction, what is wrong.

    script = split("create table t (); analyze t")
    [s.text for s in script.statements]     # ["create table t ()", "analyze t"]
    check("vacuum; select 1")               # one Problem: code, message with its place, advice

PostgreSQL's own grammar says where a statement ends, its first words say what it is. The syntax
tree is not asked for: libpg_query walks it by recursion, and a long chain of `||` ends the process.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Literal

import postgast

from muster.core import variables
from muster.core.sqltext import TRIVIA, Kind, Problem, Token, tokens

Transaction = Literal["auto", "none"]

LARGEST = 1024 * 1024  # bytes
MOST_PROBLEMS = 50
END = Token(Kind.SPACE, 0, "")
HEAD = 200  # words of a statement that are looked at

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
COPY = re.compile(r" (?:from|to) (?:stdin|stdout)\b")
ROUTINE = re.compile(r"create (?:or replace )?(?:function|procedure)\b")
BEGINS_OR_ENDS = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})
CODE = re.compile(rf"do\b|{ROUTINE.pattern}")
GO = re.compile(r"^[ \t]*(go)(?:[ \t]+[0-9]+)?[ \t;]*\r?$", re.IGNORECASE | re.MULTILINE)


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
        """Whether it can run inside a transaction, as far as the text tells."""
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
    return _split(text, list(tokens(text)))


def check(text: str, transaction: Transaction = "auto") -> list[Problem]:
    """All that is wrong with a step's script, in the order of the text."""
    size = len(text.encode())
    if size > LARGEST:
        message = f"The script has {size} bytes, {LARGEST} can be."
        return [Problem(0, "ScriptTooLarge", message, "Split it into several steps.")]
    read = list(tokens(text))
    script = _split(text, read)
    found = chain(
        islice(_of_text(text, read), MOST_PROBLEMS),
        islice(_of_literals(text, read), MOST_PROBLEMS),
        islice(_of_statements(script, transaction), MOST_PROBLEMS),
        islice(_of_control(script, read), MOST_PROBLEMS),
        islice(variables.problems(text, read), MOST_PROBLEMS),
        islice(_of_code(script, read), MOST_PROBLEMS),
    )
    return sorted(found, key=lambda problem: problem.offset)[:MOST_PROBLEMS]


def _split(text: str, read: list[Token]) -> Script:
    try:
        cuts = _cuts_by_grammar(read)
    except postgast.PgQueryError as error:
        guess = tuple(_statements(read, _cuts_by_semicolons(read)))
        # In characters, unlike the other offsets of the library.
        return Script(text, guess, error.message, max(error.cursorpos - 1, 0))
    return Script(text, tuple(_statements(read, cuts)))


def _cuts_by_grammar(read: list[Token]) -> list[int]:
    """Where each statement ends; a piece begins with the first word behind the last cut."""
    masked = variables.masked(read)
    if "\0" in masked:  # where the library would stop reading
        raise postgast.PgQueryError("a NUL character", cursorpos=masked.index("\0") + 1)
    starts = (token.start for token in read if token.kind not in TRIVIA and token.text != ";")
    cuts = [0]
    for piece in postgast.split(masked):
        first = next((start for start in starts if start >= cuts[-1]), len(masked))
        if not masked.startswith(piece, first):
            # It does not go on with a literal behind a comment line, the server does.
            raise postgast.PgQueryError("quotes that can be read in two ways", cursorpos=first + 1)
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
    head = " ".join(islice((word for word, _ in _words(group)), HEAD))
    return Statement("".join(token.text for token in group), group[0].start, first, head)


def _words(read: Iterable[Token]) -> Iterator[tuple[str, int]]:
    """What a pattern reads, quoted things as their quotes, each with its depth in parentheses."""
    depth = 0
    for token in read:
        if token.kind in TRIVIA:
            continue
        depth -= token.text == ")"
        quoted = '"' if token.text.endswith('"') else "'"
        yield quoted if token.opening else token.text.lower(), depth
        depth += token.text == "("


def _of_text(text: str, read: list[Token]) -> Iterator[Problem]:
    if "\0" in text:
        message = "PostgreSQL's text can't hold a NUL character."
        yield Problem.at(text, text.index("\0"), "ScriptHasNul", message, "Remove it.")
    if all(token.kind in TRIVIA or token.text == ";" for token in read):
        message = "The script has no statement."
        yield Problem.at(text, 0, "ScriptEmpty", message, "Give at least one.")
    separators = {found.start(1) for found in GO.finditer(text)}
    for token in read:
        if token.start in separators:
            message = "GO on a line of its own separates batches in other tools; it is no SQL."
            advice = 'Use a semicolon, or write "go" in quotes if it is a name.'
            yield Problem.at(text, token.start, "BatchSeparator", message, advice)
        elif token.text == "\\":
            message = "a backslash begins a command of psql; it is no SQL."
            advice = "Write it as SQL, or quote it."
            yield Problem.at(text, token.start, "PsqlCommand", message, advice)


def _of_literals(text: str, read: list[Token]) -> Iterator[Problem]:
    """A literal that goes on after a comment is one literal to the server and two to the grammar."""
    literal: Token | None = None  # the last one, while only spaces and comment lines follow it
    commented = False
    for token in read:
        if token.kind is Kind.SPACE:
            continue
        if token.kind is Kind.COMMENT and token.text.startswith("--"):
            commented = True
            continue
        if literal and commented and token.text.startswith("'"):
            message = "a literal goes on after a comment, which can be read in two ways."
            advice = "Remove the comment, or join two literals by ||."
            yield Problem.at(text, literal.start, "LiteralAcrossComment", message, advice)
        literal, commented = token if token.opening and token.text.endswith("'") else None, False


def _of_code(script: Script, read: list[Token]) -> Iterator[Problem]:
    """A function's body may be a plain literal: what is quoted for the literal is not quoted for the body."""
    if "$(" in script.text:
        spans = [(each.first, each.end) for each in script.statements if CODE.match(each.head)]
        yield from variables.in_code(script.text, _code_literals(read, spans))


def _code_literals(read: list[Token], spans: list[tuple[int, int]]) -> Iterator[Token]:
    """Every literal of a DO, and those after AS of a routine."""
    left = iter(spans)
    first, end = next(left, (0, 0))
    is_do, word = False, ""
    for token in read:
        while token.start >= end and end:
            first, end = next(left, (0, 0))
        if not end or token.start < first or token.kind in TRIVIA:
            continue
        if token.start == first:
            is_do = token.text.lower() == "do"
        if token.opening and token.text.endswith("'") and (is_do or word == "as"):
            yield token
        word = token.text.lower()


def _of_control(script: Script, read: list[Token]) -> Iterator[Problem]:
    """In a text that the grammar refuses: whatever seems to stand in a block may not stand in one."""
    if script.parsed:
        return
    known = {statement.first for statement in script.statements if statement.control}
    significant = [token for token in read if token.kind not in TRIVIA]
    begins = True
    for token, following in pairwise([*significant, END]):
        words = token.text.lower(), following.text.lower()
        control = words[0] in BEGINS_OR_ENDS or words == ("prepare", "transaction")
        if begins and control and token.start not in known:
            message = f"{words[0].upper()} after a semicolon, in a text that PostgreSQL 18's grammar refuses."
            advice = (
                "Such a text must not begin or end transactions; correct it or use separate steps."
            )
            yield Problem.at(script.text, token.start, "TransactionControl", message, advice)
        begins = token.text == ";"


def _of_statements(script: Script, transaction: Transaction) -> Iterator[Problem]:
    text, several = script.text, len(script.statements) > 1
    for statement in script.statements:
        name = statement.head.split(" ", maxsplit=1)[0].upper()
        if statement.control:
            message = f"{name} at top level: Muster begins and ends the transactions."
            advice = "Leave it out; with transaction: none each statement is committed by itself."
            yield Problem.at(text, statement.first, "TransactionControl", message, advice)
        elif several and transaction == "auto" and not statement.transactional:
            message = f"this {name} can't run inside a transaction together with other statements."
            advice = "Use transaction: none, or a step of its own."
            yield Problem.at(text, statement.first, "NotTransactional", message, advice)
        elif name == "COPY" and _over_the_wire(statement):
            message = "COPY from STDIN or to STDOUT has nobody at the other end."
            advice = "Use INSERT, or select the rows and set an output."
            yield Problem.at(text, statement.first, "CopyNotSupported", message, advice)
    if several and transaction == "none" and not script.parsed:
        message = f"the grammar of PostgreSQL 18 refuses this: {script.refusal}."
        advice = "With transaction: none it has to be told apart; correct it or use more steps."
        yield Problem.at(text, script.position, "ScriptNotSplit", message, advice)


def _over_the_wire(statement: Statement) -> bool:
    outside = (word for word, depth in _words(tokens(statement.text)) if not depth)
    return COPY.search(" ".join(outside)) is not None
