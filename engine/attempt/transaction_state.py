"""Detects that a script began or ended a transaction.

The replies decide, not the text: each statement that begins or ends a transaction has a command tag, and each reply
ends with the transaction status. ROLLBACK TO has the tag of ROLLBACK; it is allowed for a part that is one such
statement.
"""

from collections.abc import Sequence

from engine.pgwire.parser import FAILED_TRANSACTION, IDLE, IN_TRANSACTION
from engine.pgwire.result_set import ResultSet

CONTROL_TAGS = frozenset(
    {"BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "PREPARE TRANSACTION"}
)

__all__ = ["FAILED_TRANSACTION", "IDLE", "IN_TRANSACTION", "TransactionEnded", "controlled"]


class TransactionEnded(Exception):  # noqa: N818 - an event, not an error
    """The script began or ended a transaction."""


def controlled(sets: Sequence[ResultSet], *, savepoint: bool = False) -> bool:
    """Whether a tag belongs to transaction control; `savepoint`: the text is one ROLLBACK TO."""
    if savepoint and len(sets) == 1 and sets[0].tag == "ROLLBACK":
        return False
    return any(each.tag in CONTROL_TAGS for each in sets)
