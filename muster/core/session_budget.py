"""The default number of concurrent sessions at a server."""

LEAST, MOST, PART = 2, 20, 10  # sessions, sessions, the part of what it has left


def sessions(left: int) -> int:
    """`left`: that it could still open."""
    return max(LEAST, min(MOST, left // PART))


def working(budget: int) -> int:
    """All but one is the hosts': one is left for looking and ending."""
    return max(LEAST, budget) - 1
