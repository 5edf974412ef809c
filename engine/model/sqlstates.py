"""What an SQLSTATE says about another attempt."""

NOT_RETRIED = frozenset({"42", "28", "22", "23"})  # classes: another attempt fails alike


def retryable(sqlstate: str, retry_on: tuple[str, ...]) -> bool:
    """`retry_on`: SQLSTATEs and classes that the step wants to be retried besides."""
    return sqlstate in retry_on or sqlstate[:2] in retry_on or sqlstate[:2] not in NOT_RETRIED
