"""The login methods that show a server the password, or what is as good as it, where an Owner allowed one.

A server that asks for SCRAM is still answered by SCRAM.
"""

import hashlib
from dataclasses import dataclass, field

SCRAM, MD5, CLEAR_TEXT = "scram-sha-256", "md5", "password"  # as in pg_hba.conf
METHODS = (SCRAM, MD5, CLEAR_TEXT)
WEAK = frozenset({MD5, CLEAR_TEXT})
REQUESTS = {3: CLEAR_TEXT, 5: MD5}  # codes of the protocol


@dataclass(frozen=True)
class WeakLogin:
    method: str
    user: str
    password: str = field(repr=False)

    def answer(self, request: int, salt: bytes) -> bytes | None:
        """The body of the password message; None: the server asked for another method than is allowed."""
        if self.method not in WEAK or REQUESTS.get(request) != self.method:
            return None
        password = self.password.encode()
        if self.method == CLEAR_TEXT:
            return password + b"\0"
        inner = _md5(password + self.user.encode())
        return b"md5" + _md5(inner + salt) + b"\0"


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()
