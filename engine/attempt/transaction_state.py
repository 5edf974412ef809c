"""Whether a script left the transaction alone that it was sent in.

The answers decide, not the text: each statement that begins or ends a transaction has a command tag, and each answer
ends with the transaction status. ROLLBACK TO has the tag of ROLLBACK; a piece that is one such statement may have it.
"""

from collections.abc import Sequence

from engine.pgwire.parser import AT_REST, FAILED_TRANSACTION, IN_TRANSACTION
from engine.pgwire.results import ResultSet

CONTROL_TAGS = frozenset(
    {"BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "PREPARE TRANSACTION"}
)

__all__ = ["AT_REST", "FAILED_TRANSACTION", "IN_TRANSACTION", "TransactionEnded", "controlled"]


class TransactionEnded(Exception):  # noqa: N818 - what happened, not what is wrong
    """The script began or ended a transaction."""


def controlled(sets: Sequence[ResultSet], *, savepoint: bool = False) -> bool:
    """Whether one of the tags is of a transaction; `savepoint`: the text is one ROLLBACK TO."""
    if savepoint and len(sets) == 1 and sets[0].tag == "ROLLBACK":
        return False
    return any(each.tag in CONTROL_TAGS for each in sets)
