"""How many event streams one process of the API serves at once."""

import contextlib
from collections import Counter
from collections.abc import Iterator

from api.errors import ProtocolFault

MOST_OF_PRINCIPAL = 8
MOST_OF_ACCOUNT = 32
MOST = 200


class EventStreamLimits:
    """How many streams are open, by principal and by account."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, principal: str, account: str) -> Iterator[None]:
        limits = {
            "": MOST,
            f"principal {principal}": MOST_OF_PRINCIPAL,
            f"account {account}": MOST_OF_ACCOUNT,
        }
        for key, most in limits.items():
            if self._open[key] >= most:
                whose = f"of this {key.split()[0]} " if key else ""
                message = f"{most} event streams {whose}are open already; close one of them."
                raise ProtocolFault(429, "TooManyEventStreams", message, [(b"retry-after", b"10")])
        self._open.update(limits.keys())
        try:
            yield
        finally:
            self._open.subtract(limits.keys())
            self._open += Counter()  # without the zeros
