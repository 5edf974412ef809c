"""Compares the configured envelope keys with the ones that the metadata database was sealed with.

A key file that was lost and made again would seal new secrets under a key that the old ones don't
have. A process with such a key must not start.
"""

from muster.core.db import Database
from muster.core.errors import Unavailable
from muster.core.secrets import Keyring
from muster.core.sql import Queries

Q = Queries("muster.roles.sql", "keys.sql")

LABEL = "muster envelope key check value"
CURE = (
    "Restore the key list that this metadata database was used with (MUSTER_KEYS, or the file of "
    "MUSTER_KEYS_FILE; `muster up` keeps it in secrets/keys of its data directory). Nothing was changed."
)


async def check_keys(db: Database, keyring: Keyring) -> None:
    """Records keys that are new; refuses a list that can't be the one of this database."""
    configured = {key_id: keyring.derive(LABEL, key_id) for key_id in keyring.ids}
    stored = await _known(db)
    if stored and configured and not stored.keys() & configured.keys():
        names = ", ".join(f"'{key_id}'" for key_id in stored)
        raise Unavailable(
            f"None of the configured envelope keys was used with this metadata database, which "
            f"knows {names}. {CURE}",
            code="EnvelopeKeyMissing",
        )
    _compare(configured, stored)
    for key_id in configured.keys() - stored.keys():
        await db.execute(Q.add_key, key_id, configured[key_id])
    _compare(configured, await _known(db))


async def _known(db: Database) -> dict[str, bytes]:
    return {row["key_id"]: row["check_value"] for row in await db.fetch(Q.known_keys)}


def _compare(configured: dict[str, bytes], stored: dict[str, bytes]) -> None:
    for key_id, value in configured.items():
        if stored.get(key_id, value) != value:
            raise Unavailable(
                f"The envelope key '{key_id}' is not the key of that id which sealed the secrets in "
                f"this metadata database. {CURE}",
                code="EnvelopeKeyMismatch",
            )
