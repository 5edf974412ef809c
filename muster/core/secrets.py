"""Sealed secrets: AES-256-GCM under a fresh key each, wrapped by an envelope key with an id.

A sealed value is text `v1.<key id>.<wrapped data key>.<ciphertext>`, bound to what it belongs to
(`context`): moved to another row it does not open. Rotation re-wraps the data key only.
"""

import base64
import binascii
import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from muster.core.errors import Internal, Unavailable
from muster.core.settings import Secret, SettingsError

NONCE = 12


class Keyring:
    """Envelope keys by id; the first one seals, all of them open."""

    def __init__(self, keys: Secret | None) -> None:
        self._keys: dict[str, AESGCM] = {}
        self._raw: dict[str, bytes] = {}
        for entry in keys.reveal().split(",") if keys else []:
            name, _, encoded = entry.strip().partition(":")
            try:
                raw = base64.b64decode(encoded, validate=True)
            except binascii.Error:
                raw = b""
            if not name or "." in name or len(raw) != 32:
                raise SettingsError(
                    "MUSTER_KEYS: expected id:base64 of 32 bytes, separated by commas"
                )
            self._keys[name] = AESGCM(raw)
            self._raw[name] = raw

    @property
    def current(self) -> str:
        if not self._keys:
            raise Unavailable(
                "No envelope key is configured (MUSTER_KEYS): secrets can't be stored."
            )
        return next(iter(self._keys))

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def seal(self, plain: str, context: str) -> str:
        data_key = AESGCM.generate_key(bit_length=256)
        text = _encrypt(AESGCM(data_key), plain.encode(), context)
        return f"v1.{self.current}.{self._wrap(data_key, context)}.{text}"

    def open(self, sealed: str, context: str) -> Secret:
        data_key, text = self._unwrap(sealed, context)
        return Secret(_decrypt(AESGCM(data_key), text, context).decode())

    def rewrap(self, sealed: str, context: str) -> str:
        """The same secret under the current key; what is under it already stays as it is."""
        if sealed.split(".")[1] == self.current:
            return sealed
        data_key, text = self._unwrap(sealed, context)
        return f"v1.{self.current}.{self._wrap(data_key, context)}.{text}"

    def derive(self, label: str, key_id: str | None = None) -> bytes:
        """32 bytes for one purpose, the same in every process that has the envelope key."""
        name = self.current if key_id is None else key_id
        if name not in self._raw:
            raise Unavailable(f"Envelope key '{name}' is missing.")
        return HKDF(hashes.SHA256(), 32, salt=None, info=label.encode()).derive(self._raw[name])

    def _wrap(self, data_key: bytes, context: str) -> str:
        return _encrypt(self._keys[self.current], data_key, context)

    def _unwrap(self, sealed: str, context: str) -> tuple[bytes, str]:
        try:
            version, name, wrapped, text = sealed.split(".")
        except ValueError:
            raise Internal("A stored secret has an unknown form.") from None
        if version != "v1" or name not in self._keys:
            raise Unavailable(f"Envelope key '{name}' is missing: the secret can't be opened now.")
        return _decrypt(self._keys[name], wrapped, context), text


def fingerprint(sealed: str) -> str:
    """Another one each time a secret is sealed; re-wrapping leaves it as it is. It reveals nothing of the secret."""
    return hashlib.sha256(sealed.rpartition(".")[2].encode()).hexdigest()


def _encrypt(key: AESGCM, plain: bytes, context: str) -> str:
    nonce = os.urandom(NONCE)
    return base64.urlsafe_b64encode(nonce + key.encrypt(nonce, plain, context.encode())).decode()


def _decrypt(key: AESGCM, text: str, context: str) -> bytes:
    raw = base64.urlsafe_b64decode(text)
    try:
        return key.decrypt(raw[:NONCE], raw[NONCE:], context.encode())
    except InvalidTag:
        raise Internal("A stored secret does not belong to its row.") from None
