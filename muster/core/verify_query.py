"""What a verify query may be: exactly one statement that only reads, as far as its words tell.

It runs in a READ ONLY transaction, so a function that writes tables fails there; the words only catch mistakes early.
"""

from collections.abc import Iterator

from muster.core.read_only_sql import QUERY, writing_words
from muster.core.script import Analysis
from muster.core.sqltext import TRIVIA, Problem, tokens

REFUSED = "InvalidVerifyQuery"
MAX_LENGTH = 64 * 1024  # characters


def problems(analysis: Analysis) -> Iterator[Problem]:
    """What is wrong with the text as a script, else with it as a verify query; nothing: it can be asked."""
    if analysis.problems:
        yield from analysis.problems
    elif why := _refusal(analysis):
        message, advice = why
        yield Problem(0, REFUSED, message, advice)


def _refusal(analysis: Analysis) -> tuple[str, str] | None:
    script = analysis.script
    if len(script.text) > MAX_LENGTH:
        return f"The query has {len(script.text)} characters, {MAX_LENGTH} can be.", "Shorten it."
    if script.refusal:
        message = f"The grammar of PostgreSQL 18 refuses the query: {script.refusal}."
        return message, "Correct it."
    if len(script.statements) != 1:
        message = f"The query has {len(script.statements)} statements."
        return message, "A verify query is exactly one statement."
    significant = [each for each in tokens(script.statements[0].text) if each.kind not in TRIVIA]
    first = next((each.text for each in significant if each.text != "("), "").upper()
    if first.lower() not in QUERY:
        message = f"{first} is no query."
        return message, "A verify query only reads: SELECT, VALUES, TABLE or WITH."
    if words := writing_words(significant):
        message = f"The query has the word {min(words).upper()}, which writes or locks rows."
        return message, "A verify query only reads; put the word in double quotes if it is a name."
    return None
