"""The client's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677, RFC 5929).

asyncpg knows no channel binding and takes any number of iterations. The exchange is therefore made
here, between the bytes of the server and asyncpg, which sees only that the login was accepted. A server
has to prove that it knows the password, too.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import ssl
import stringprep
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
LEAST_ITERATIONS = 4_096
MOST_ITERATIONS = (
    200_000  # a hostile server could make the derivation of a key block us for minutes
)
WEAK_HASHES = {"md5", "sha1"}  # RFC 5929: sha256 takes their place
PROHIBITED = (
    stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
    stringprep.in_table_c8, stringprep.in_table_c9,
)  # fmt: skip


class ScramError(Exception):
    """What the server did wrong, as the end of a sentence that begins with "the server"."""


class SaltedKeys:
    """Keys by password and salt: a role has one salt however many databases it opens."""

    def __init__(self, kept: int = 1024) -> None:
        self.derived = 0
        self._kept = kept
        self._keys: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        name = hashlib.sha256(f"{iterations} {len(salt)} ".encode() + salt + password).digest()
        if name in self._keys:
            self._keys.move_to_end(name)
            return self._keys[name]
        self.derived += 1
        key = self._keys[name] = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
        if len(self._keys) > self._kept:
            self._keys.popitem(last=False)
        return key


KEYS = SaltedKeys()


class ScramClient:
    """One login: `first`, then `final`, then `verify`."""

    def __init__(
        self, password: str, mechanisms: Sequence[str], binding: bytes | None, nonce: str = ""
    ) -> None:
        """`binding`: the channel's, None where there is no TLS or its certificate gives none."""
        self.proven = False
        self._password = prepared(password)
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(18)).decode()
        if binding is not None and PLUS in mechanisms:
            self.mechanism, self._header = PLUS, "p=tls-server-end-point,,"
            self._binding = binding
        elif PLAIN in mechanisms:
            # "y": we could bind and were not offered it; a server that did offer it refuses then.
            self.mechanism, self._header = PLAIN, "n,," if binding is None else "y,,"
            self._binding = b""
        else:
            raise ScramError(f"it offers no login by {PLAIN}")
        self._auth_message = b""
        self._key = b""

    def first(self) -> bytes:
        return f"{self._header}{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        fields = _fields(server_first)
        nonce, iterations = fields.get("r", ""), fields.get("i", "")
        try:
            salt = base64.b64decode(fields.get("s", ""), validate=True)
        except binascii.Error:
            salt = b""
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not salt:
            raise ScramError("it does not support SCRAM")
        if not iterations.isdecimal() or len(iterations) > 9:
            raise ScramError("it does not support SCRAM")
        rounds = int(iterations)
        if rounds < LEAST_ITERATIONS:
            raise ScramError(
                f"it asked for {rounds} iterations of SCRAM, and fewer than {LEAST_ITERATIONS} are not safe; "
                "set its scram_iterations and give the role its password again"
            )
        if rounds > MOST_ITERATIONS:
            raise ScramError(f"it asked for more than {MOST_ITERATIONS} iterations of SCRAM")
        bound = base64.b64encode(self._header.encode() + self._binding).decode()
        without_proof = f"c={bound},r={nonce}".encode()
        self._key = KEYS.get(self._password, salt, rounds)
        self._auth_message = b",".join((self._first_bare.encode(), server_first, without_proof))
        client_key = hmac.digest(self._key, b"Client Key", "sha256")
        stored_key = hashlib.sha256(client_key).digest()
        signature = hmac.digest(stored_key, self._auth_message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return without_proof + b",p=" + base64.b64encode(proof)

    def verify(self, server_final: bytes) -> None:
        server_key = hmac.digest(self._key, b"Server Key", "sha256")
        expected = base64.b64encode(hmac.digest(server_key, self._auth_message, "sha256"))
        signature = _fields(server_final).get("v", "").encode()
        if not self._key or not hmac.compare_digest(signature, expected):
            raise ScramError("it could not prove that it knows the password")
        self.proven = True

    @property
    def _first_bare(self) -> str:
        return f"n=,r={self._nonce}"  # the user's name is in the startup message


def end_point(tls: ssl.SSLObject | None) -> bytes | None:
    """The channel binding `tls-server-end-point`: a hash of the server's certificate."""
    der = tls.getpeercert(binary_form=True) if tls else None
    if not der:
        return None
    try:
        algorithm = x509.load_der_x509_certificate(der).signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        return None
    if algorithm is None:  # Ed25519 and the like: no hash is defined for them
        return None
    name = "sha256" if algorithm.name in WEAK_HASHES else algorithm.name
    return hashlib.new(name, der).digest()


def prepared(password: str) -> bytes:
    """By SASLprep, as PostgreSQL does it: what that forbids is taken as it is."""
    if password.isascii():
        return password.encode()
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each
        for each in password
        if not stringprep.in_table_b1(each)
    )
    text = unicodedata.normalize("NFKC", mapped)
    forbidden = any(table(each) for each in text for table in PROHIBITED)
    unassigned = any(stringprep.in_table_a1(each) for each in text)
    if not text or forbidden or unassigned or not _one_direction(text):
        text = password
    return text.encode(errors="surrogatepass")


def _one_direction(text: str) -> bool:
    if not any(stringprep.in_table_d1(each) for each in text):
        return True
    left = any(stringprep.in_table_d2(each) for each in text)
    return not left and stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])


def _fields(message: bytes) -> dict[str, str]:
    parts = message.decode("ascii", errors="replace").split(",")
    return {name: value for name, _, value in (part.partition("=") for part in parts)}
