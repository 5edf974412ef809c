"""Secrets for one account: sealed with its public key, opened only where its private key is.

A sealed value is text `sealed:` + base64 of an ephemeral X25519 key, a nonce and the ciphertext, bound
to account, control database and the credential or server that it is for: anywhere else it does not open.
"""

import base64
import binascii
import os
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from muster.core.errors import InvalidRequest
from muster.core.settings import Secret

PREFIX = "sealed:"
LABEL = b"muster/credential/v1"
KEY, NONCE = 32, 12


def belongs_to(account_uid: UUID, identity: UUID, credential: str) -> str:
    """What a secret is bound to; names ignore case."""
    return f"{account_uid}/{identity}/{credential.lower()}"


def belongs_to_server(account_uid: UUID, identity: UUID, server_id: str) -> str:
    """What the key of a client certificate is bound to; no credential's name leads to the same."""
    return f"client-key/{account_uid}/{identity}/{server_id.lower()}"


def belongs_to_webhook(account_uid: UUID, identity: UUID, webhook: str) -> str:
    """What the secret of a webhook is bound to; no credential's name leads to the same."""
    return f"webhook/{account_uid}/{identity}/{webhook.lower()}"


def seal(public_key: str, plain: Secret, context: str) -> str:
    """`public_key` is base64, as the control database shows it."""
    there = X25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
    once = X25519PrivateKey.generate()
    sender, nonce = once.public_key().public_bytes_raw(), os.urandom(NONCE)
    cipher = _cipher(once.exchange(there), sender + there.public_bytes_raw())
    hidden = cipher.encrypt(nonce, plain.reveal().encode(), context.encode())
    return PREFIX + base64.b64encode(sender + nonce + hidden).decode()


def open_sealed(private_key: Secret, sealed: str, context: str) -> Secret:
    """Refuses what was made for another account, control database or purpose."""
    here = X25519PrivateKey.from_private_bytes(base64.b64decode(private_key.reveal()))
    try:
        raw = base64.b64decode(sealed.removeprefix(PREFIX), validate=True)
        sender = X25519PublicKey.from_public_bytes(raw[:KEY])
        shared = here.exchange(sender)
        cipher = _cipher(shared, raw[:KEY] + here.public_key().public_bytes_raw())
        plain = cipher.decrypt(raw[KEY : KEY + NONCE], raw[KEY + NONCE :], context.encode())
        return Secret(plain.decode())
    except (binascii.Error, ValueError, InvalidTag):
        raise InvalidRequest("A sealed value does not belong here.", code="SealedValue") from None


def _cipher(shared: bytes, ends: bytes) -> AESGCM:
    return AESGCM(HKDF(hashes.SHA256(), 32, salt=ends, info=LABEL).derive(shared))
