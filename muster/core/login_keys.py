"""Logs in with a password whose key was derived before: the derivation is made to be slow.

SCRAM hashes a password thousands of times with the salt of its role. A role has one salt at a server
however many databases it opens there, so the key is derived once for all of them; the exchange itself
is the same, and the server checks it as before. asyncpg has no hook for this and finds `hashlib` in its
module: there it finds ours.
"""

import hashlib
from collections import OrderedDict
from typing import Any

from asyncpg.protocol import protocol

KEPT = 1024  # keys; a fleet has few roles on few servers


class Keys:
    """`hashlib`, but for a memory."""

    def __init__(self) -> None:
        self.derived = 0
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    def pbkdf2_hmac(self, name: str, password: bytes, salt: bytes, rounds: int) -> bytes:
        asked = hashlib.sha256(f"{name} {rounds} {len(salt)} ".encode() + salt + password).digest()
        if asked in self._known:
            self._known.move_to_end(asked)
            return self._known[asked]
        self.derived += 1
        key = self._known[asked] = hashlib.pbkdf2_hmac(name, password, salt, rounds)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return key

    def __getattr__(self, name: str) -> Any:
        return getattr(hashlib, name)


KEYS = Keys()


def install() -> None:
    """For every login of this process."""
    protocol.hashlib = KEYS  # type: ignore[attr-defined]


def remove() -> None:
    """Leaves asyncpg as it comes, to be compared with."""
    protocol.hashlib = hashlib  # type: ignore[attr-defined]
