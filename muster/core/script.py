"""Scripts: which statements they have, whether those can share a transaction, what is wrong.

    script = split("create table t (); analyze t")
    [s.text for s in script.statements]     # ["create table t ()", "analyze t"]
    check("vacuum; select 1")               # one Problem: code, message with its place, advice

Texts of others are read through muster/core/script_reader.py, which has a time limit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Literal

from muster.core import variables
from muster.core.sqltext import TRIVIA, Kind, Problem, Token, tokens
from muster.core.statements import (
    ROUTINE,
    Script,
    Statement,
    across_comments,
    excess,
    split,
    split_tokens,
    words,
)

__all__ = ["Analysis", "Script", "Statement", "analyse", "check", "split"]

Transaction = Literal["auto", "none"]

LARGEST = 1024 * 1024  # bytes
MOST_PROBLEMS = 50
END = Token(Kind.SPACE, 0, "")
TOO_COMPLEX = "ScriptTooComplex"

COPY = re.compile(r" (?:from|to) (?:stdin|stdout)\b")
BEGINS_OR_ENDS = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})
CODE = re.compile(rf"do\b|{ROUTINE.pattern}")
GO = re.compile(r"^[ \t]*(go)(?:[ \t]+[0-9]+)?[ \t;]*\r?$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Analysis:
    script: Script
    problems: tuple[Problem, ...]


def analyse(text: str, transaction: Transaction = "auto") -> Analysis:
    """The statements, and all that is wrong with a step's script, in the order of the text."""
    size = len(text.encode())
    if size > LARGEST:
        message = f"The script has {size} bytes, {LARGEST} can be."
        problem = Problem(0, "ScriptTooLarge", message, "Split it into several steps.")
        return Analysis(Script(text, (), message), (problem,))
    read = list(tokens(text))
    script = split_tokens(text, read)
    findings = chain(
        islice(_of_text(text, read), MOST_PROBLEMS),
        islice(_of_limits(text, read), MOST_PROBLEMS),
        islice(_of_literals(text, read), MOST_PROBLEMS),
        islice(_of_statements(script, transaction), MOST_PROBLEMS),
        islice(_of_control(script, read), MOST_PROBLEMS),
        islice(variables.problems(text, read), MOST_PROBLEMS),
        islice(_of_code(script, read), MOST_PROBLEMS),
    )
    problems = sorted(findings, key=lambda problem: problem.offset)[:MOST_PROBLEMS]
    return Analysis(script, tuple(problems))


def check(text: str, transaction: Transaction = "auto") -> list[Problem]:
    return list(analyse(text, transaction).problems)


def _of_text(text: str, read: list[Token]) -> Iterator[Problem]:
    if "\0" in text:
        message = "PostgreSQL's text can't hold a NUL character."
        yield Problem.at(text, text.index("\0"), "ScriptHasNul", message, "Remove it.")
    if all(token.kind in TRIVIA or token.text == ";" for token in read):
        message = "The script has no statement."
        yield Problem.at(text, 0, "ScriptEmpty", message, "Give at least one.")
    separators = {match.start(1) for match in GO.finditer(text)}
    for token in read:
        if token.start in separators:
            message = "GO on a line of its own separates batches in other tools; it is no SQL."
            advice = 'Use a semicolon, or write "go" in quotes if it is a name.'
            yield Problem.at(text, token.start, "BatchSeparator", message, advice)
        elif token.text == "\\":
            message = "a backslash begins a command of psql; it is no SQL."
            advice = "Write it as SQL, or quote it."
            yield Problem.at(text, token.start, "PsqlCommand", message, advice)


def _of_limits(text: str, read: list[Token]) -> Iterator[Problem]:
    if too_much := excess(read):
        message, advice = f"{too_much.message}.", "Write it in another way."
        yield Problem.at(text, too_much.offset, TOO_COMPLEX, message, advice)


def _of_literals(text: str, read: list[Token]) -> Iterator[Problem]:
    for literal in across_comments(read):
        message = "a literal goes on after a comment, which can be read in two ways."
        advice = "Remove the comment, or join two literals by ||."
        yield Problem.at(text, literal.start, "LiteralAcrossComment", message, advice)


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
    """In a text that the grammar refuses: text that looks like part of a block may not be in one."""
    if script.parsed:
        return
    controls = {statement.first for statement in script.statements if statement.control}
    significant = [token for token in read if token.kind not in TRIVIA]
    begins = True
    for token, following in pairwise([*significant, END]):
        words = token.text.lower(), following.text.lower()
        control = words[0] in BEGINS_OR_ENDS or words == ("prepare", "transaction")
        if begins and control and token.start not in controls:
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
            message = "COPY from STDIN or to STDOUT is not possible: a job has no client that sends or receives rows."
            advice = "Use INSERT, or select the rows and set an output."
            yield Problem.at(text, statement.first, "CopyNotSupported", message, advice)
    if several and transaction == "none" and not script.parsed:
        message = f"the grammar of PostgreSQL 18 refuses this: {script.refusal}."
        advice = (
            "With transaction: none it must be split into statements; correct it or use more steps."
        )
        yield Problem.at(text, script.position, "ScriptNotSplit", message, advice)


def _over_the_wire(statement: Statement) -> bool:
    outside = (word for word, depth in words(tokens(statement.text)) if not depth)
    return COPY.search(" ".join(outside)) is not None
