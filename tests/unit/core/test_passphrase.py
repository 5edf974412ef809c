"""Bytes under a passphrase: only it opens them, for what they were sealed for, unchanged."""

import pytest

from muster.core import passphrase
from muster.core.errors import InvalidRequest
from muster.core.settings import Secret

PHRASE = Secret("correct horse battery")


def test_the_passphrase_opens_what_it_sealed():
    sealed = passphrase.seal(PHRASE, b"\x00keys", "backup")

    assert passphrase.open_sealed(PHRASE, sealed, "backup") == b"\x00keys"
    assert passphrase.seal(PHRASE, b"\x00keys", "backup") != sealed


@pytest.mark.parametrize(
    ("phrase", "context", "change"),
    [
        (Secret("another one of them"), "backup", lambda sealed: sealed),
        (PHRASE, "something else", lambda sealed: sealed),
        (PHRASE, "backup", lambda sealed: sealed[:-8] + "AAAAAAA="),
        (PHRASE, "backup", lambda sealed: "v2." + sealed),
        (PHRASE, "backup", lambda sealed: "scrypt.1.%%%"),
        (PHRASE, "backup", lambda sealed: "scrypt.1."),
    ],
    ids=["passphrase", "context", "changed", "form", "no base64", "empty"],
)
def test_nothing_else_opens_it(phrase, context, change):
    sealed = change(passphrase.seal(PHRASE, b"keys", "backup"))

    with pytest.raises(InvalidRequest) as refused:
        passphrase.open_sealed(phrase, sealed, context)

    assert refused.value.code == "WrongPassphrase"


def test_a_short_passphrase_is_refused():
    with pytest.raises(InvalidRequest, match="at least 12 characters"):
        passphrase.seal(Secret("elevenchars"), b"keys", "backup")
