import base64

import pytest

from muster.core.errors import Internal, Unavailable
from muster.core.secrets import Keyring, fingerprint
from muster.core.settings import Secret, SettingsError


def key(name: str, byte: int) -> str:
    return f"{name}:{base64.b64encode(bytes([byte]) * 32).decode()}"


OLD = Keyring(Secret(key("old", 1)))
BOTH = Keyring(Secret(f"{key('new', 2)},{key('old', 1)}"))
NEW = Keyring(Secret(key("new", 2)))


def test_a_secret_opens_where_it_belongs_and_nowhere_else():
    sealed = OLD.seal("pâsswörd", "server/password")

    assert OLD.open(sealed, "server/password").reveal() == "pâsswörd"
    assert "pâsswörd" not in sealed
    with pytest.raises(Internal):
        OLD.open(sealed, "another/password")


def test_the_same_text_is_never_sealed_alike():
    assert OLD.seal("x", "c") != OLD.seal("x", "c")


def test_rotation_wraps_anew_without_touching_the_secret():
    sealed = OLD.seal("x", "c")
    rewrapped = BOTH.rewrap(sealed, "c")

    assert BOTH.open(sealed, "c") == Secret("x")
    assert NEW.open(rewrapped, "c") == Secret("x")
    assert rewrapped.rpartition(".")[2] == sealed.rpartition(".")[2]
    assert BOTH.rewrap(rewrapped, "c") == rewrapped
    with pytest.raises(Unavailable, match="'old'"):
        NEW.open(sealed, "c")


def test_a_fingerprint_stays_when_keys_are_rotated_and_changes_when_the_secret_is_set_again():
    sealed = OLD.seal("x", "c")

    assert fingerprint(BOTH.rewrap(sealed, "c")) == fingerprint(sealed)
    assert fingerprint(OLD.seal("x", "c")) != fingerprint(sealed)


def test_a_changed_bit_is_noticed():
    head, _, text = OLD.seal("x", "c").rpartition(".")
    raw = bytearray(base64.urlsafe_b64decode(text))
    raw[-1] ^= 1
    with pytest.raises(Internal):
        OLD.open(f"{head}.{base64.urlsafe_b64encode(raw).decode()}", "c")


@pytest.mark.parametrize("sealed", ["", "v1", "v1.a.b", "v2.old.a.b"])
def test_what_is_no_sealed_secret_is_refused(sealed):
    with pytest.raises((Internal, Unavailable)):
        OLD.open(sealed, "c")


@pytest.mark.parametrize(
    "keys", ["x", "x:", "x:abc", "a.b:" + "A" * 43 + "=", ":" + "A" * 43 + "="]
)
def test_wrong_keys_are_refused(keys):
    with pytest.raises(SettingsError):
        Keyring(Secret(keys))


def test_without_a_key_nothing_is_sealed():
    with pytest.raises(Unavailable):
        Keyring(None).seal("x", "c")
