"""How the functions of schema `jobs` are installed: their errors don't show the functions inside.

PostgreSQL adds a CONTEXT line to an error for every PL/pgSQL function that it passes, and psql prints
them. An error that such a function raises on purpose (SQLSTATE MU…) is therefore raised again by the
function that the user called. One line is left, with the name of that function: only PL/pgSQL can raise
an error with a message of its own, and it always adds that line. Any other error keeps its context: it
is a mistake in Muster.
"""

import re
from importlib import resources

from muster.core.errors import Internal

FUNCTION = re.compile(
    r"(?P<head>create or replace function jobs\.\w+\(.*?\nlanguage plpgsql .*?\nas \$\$\n(?:#[^\n]*\n)*)"
    r"(?P<body>.*?\nend) \$\$;\n",
    re.DOTALL,
)
PUBLIC = re.compile(r"^create or replace function jobs\.", re.MULTILINE)
AROUND = (resources.files("nodeagent.sql") / "public_function.sql").read_text(encoding="utf-8")


def installed(text: str) -> str:
    """The text of a file as it is applied."""
    if not PUBLIC.search(text):
        return text
    made, number = FUNCTION.subn(_around, text)
    if number != 1:
        raise Internal("a function of schema jobs is one PL/pgSQL function in a file of its own")
    return made


def _around(match: "re.Match[str]") -> str:
    return match["head"] + AROUND.replace(":body", f"{match['body']};")
