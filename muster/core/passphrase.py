"""Bytes sealed under a passphrase: AES-256-GCM, the key derived from the passphrase with scrypt.

The text is `scrypt.1.` + base64 of salt, nonce and ciphertext.
"""

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from muster.core.errors import InvalidRequest
from muster.core.settings import Secret

FORM = "scrypt.1."
SHORTEST = 12  # characters of a passphrase
SALT, NONCE = 16, 12
COST, BLOCK, LANES = 2**17, 8, 1  # 128 MB of memory for each guess


def seal(passphrase: Secret, plain: bytes, context: str) -> str:
    if len(passphrase.reveal()) < SHORTEST:
        raise InvalidRequest(
            f"The passphrase is too short: at least {SHORTEST} characters are needed.",
            code="PassphraseTooShort",
        )
    salt, nonce = os.urandom(SALT), os.urandom(NONCE)
    hidden = _cipher(passphrase, salt).encrypt(nonce, plain, context.encode())
    return FORM + base64.b64encode(salt + nonce + hidden).decode()


def open_sealed(passphrase: Secret, sealed: str, context: str) -> bytes:
    wrong = InvalidRequest(
        "The passphrase is wrong, or what it seals was changed.", code="WrongPassphrase"
    )
    if not sealed.startswith(FORM):
        raise wrong
    try:
        raw = base64.b64decode(sealed.removeprefix(FORM), validate=True)
        salt, nonce, hidden = raw[:SALT], raw[SALT : SALT + NONCE], raw[SALT + NONCE :]
        return _cipher(passphrase, salt).decrypt(nonce, hidden, context.encode())
    except (binascii.Error, ValueError, InvalidTag):
        raise wrong from None


def _cipher(passphrase: Secret, salt: bytes) -> AESGCM:
    derivation = Scrypt(salt=salt, length=32, n=COST, r=BLOCK, p=LANES)
    return AESGCM(derivation.derive(passphrase.reveal().encode()))
