"""The client's side of a SCRAM login against a server's side that is written here from the RFC."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.scram import verifier
from muster.core.scram_client import PLAIN, PLUS, ScramClient, ScramError, prepared
from muster.core.settings import Secret

SALT = base64.b64encode(b"salt of the role").decode()


class Server:
    def __init__(self, password: bytes, binding: bytes = b"") -> None:
        self.key = hashlib.pbkdf2_hmac("sha256", password, b"salt of the role", 4096)
        self.binding = binding

    def first(self, client_first: bytes) -> bytes:
        self.header, _, bare = client_first.partition(b",,")
        self.bare = bare
        self.said = b"r=" + bare.partition(b"r=")[2] + f"server,s={SALT},i=4096".encode()
        return self.said

    def final(self, client_final: bytes) -> bytes:
        """Raises when the client does not know the password, or stands on another channel."""
        without, _, proof = client_final.rpartition(b",p=")
        message = b",".join((self.bare, self.said, without))
        bound = base64.b64decode(without.partition(b"c=")[2].partition(b",")[0])
        assert bound == self.header + b",," + self.binding
        client_key = hmac.digest(self.key, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
        assert base64.b64decode(proof) == bytes(
            a ^ b for a, b in zip(client_key, signature, strict=True)
        )
        server_key = hmac.digest(self.key, b"Server Key", "sha256")
        return b"v=" + base64.b64encode(hmac.digest(server_key, message, "sha256"))


def log_in(client: ScramClient, server: Server) -> None:
    client.verify(server.final(client.final(server.first(client.first()))))


@given(st.text(min_size=1, max_size=40).filter(lambda text: text.isascii()))
def test_whoever_knows_the_password_gets_in(password: str) -> None:
    client = ScramClient(password, [PLAIN], None)

    log_in(client, Server(password.encode()))

    assert client.proven and client.mechanism == PLAIN


def test_the_login_is_bound_to_the_channel_where_the_server_offers_it() -> None:
    client = ScramClient("x", [PLUS, PLAIN], b"hash of the certificate")

    log_in(client, Server(b"x", b"hash of the certificate"))

    assert client.mechanism == PLUS
    stranger = ScramClient("x", [PLUS, PLAIN], b"hash of another certificate")
    with pytest.raises(AssertionError):
        log_in(stranger, Server(b"x", b"hash of the certificate"))


@pytest.mark.parametrize(
    ("mechanisms", "binding", "header"),
    [
        ([PLUS, PLAIN], None, b"n,,"),
        ([PLAIN], None, b"n,,"),
        (
            [PLAIN],
            b"hash",
            b"y,,",
        ),  # a server that offered more, and lost it on the way, refuses this
        ([PLUS, PLAIN], b"hash", b"p=tls-server-end-point,,"),
    ],
)
def test_the_header_says_what_was_offered(
    mechanisms: list[str], binding: bytes | None, header: bytes
) -> None:
    assert ScramClient("x", mechanisms, binding).first().startswith(header)


def test_a_server_that_does_not_know_the_password_is_noticed() -> None:
    client = ScramClient("x", [PLAIN], None)
    client.final(Server(b"other").first(client.first()))

    with pytest.raises(ScramError, match="prove"):
        client.verify(b"v=" + base64.b64encode(bytes(32)))
    assert not client.proven


@pytest.mark.parametrize(
    "first",
    [b"", b"r=other,s=c2FsdA==,i=4096", b"r={nonce},s=c2FsdA==,i=4096", b"r={nonce}x,s=,i=4096",
     b"r={nonce}x,s=!,i=4096", b"r={nonce}x,s=c2FsdA==,i=many", b"r={nonce}x,s=c2FsdA==", b"\xff\x00"],
)  # fmt: skip
def test_what_is_no_answer_is_refused(first: bytes) -> None:
    client = ScramClient("x", [PLAIN], None, nonce="ours")

    with pytest.raises(ScramError):
        client.final(first.replace(b"{nonce}", b"ours"))


def test_without_a_common_mechanism_there_is_no_login() -> None:
    for offered in ([], ["SCRAM-SHA-1"], [PLUS]):
        with pytest.raises(ScramError, match="SCRAM-SHA-256"):
            ScramClient("x", offered, None)


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("plain", "plain"),
        ("a\u00a0b", "a b"),
        ("a\u00adb", "ab"),
        ("\u2168", "IX"),
        ("\u0007x\u00e9", "\u0007x\u00e9"),  # forbidden: as it is
        ("\u0627a", "\u0627a"),  # both directions: as it is
    ],
)
def test_passwords_are_prepared_as_postgresql_does_it(password: str, expected: str) -> None:
    assert prepared(password) == expected.encode()


def test_a_verifier_of_ours_fits() -> None:
    """Both halves prepare a password alike."""
    made = verifier(Secret("Ⅸ pässwörd"))
    rounds, salt = made.split("$")[1].split(":")
    key = hashlib.pbkdf2_hmac("sha256", prepared("Ⅸ pässwörd"), base64.b64decode(salt), int(rounds))
    stored = hashlib.sha256(hmac.digest(key, b"Client Key", "sha256")).digest()
    assert made.split("$")[2].split(":")[0] == base64.b64encode(stored).decode()
