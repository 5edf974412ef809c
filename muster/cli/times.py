"""Points in time as they are typed: 2h, 30d, 2031-01-01, 2031-01-01T08:00+01:00; without a zone they are local."""

import argparse
from datetime import UTC, datetime, timedelta

from muster.cli.typed import duration


def past(text: str) -> str:
    """A time, or how long ago it was."""
    return _point(text, -1, "how long ago, such as 2h")


def future(text: str) -> str:
    """A time, or a duration from now."""
    return _point(text, 1, "a duration from now, such as 90d")


def _point(text: str, direction: int, otherwise: str) -> str:
    from muster.core.clock import Clock  # late: it imports asyncio

    try:
        at = datetime.fromisoformat(text).astimezone()
    except ValueError:
        try:
            at = Clock().now() + direction * timedelta(seconds=duration(text))
        except argparse.ArgumentTypeError:
            message = f"'{text}' is neither {otherwise}, nor a time such as 2031-01-01T02:00"
            raise argparse.ArgumentTypeError(message) from None
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
