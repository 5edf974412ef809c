"""A password's SCRAM verifier, made on our side so that no server ever logs the password."""

import base64
import hashlib
import hmac
import os

from muster.core.scram_client import prepared
from muster.core.settings import Secret

ITERATIONS = 4096


def verifier(password: Secret) -> str:
    """RFC 5802 in PostgreSQL's form: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password.reveal()), salt, ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    server = hmac.digest(salted, b"Server Key", "sha256")
    stored = hashlib.sha256(client).digest()
    return f"SCRAM-SHA-256${ITERATIONS}:{_b64(salt)}${_b64(stored)}:{_b64(server)}"


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
