"""`muster backup`: a data directory of `muster up` as a folder that `muster restore` makes one of again.

DIR/backup.json      what it is, for people and for `restore`
DIR/secrets          keys, token, passwords, and a digest of every other file, sealed under the passphrase
DIR/metadata, DIR/clusters/*   a base backup of each cluster

The installation may run meanwhile. The metadata database comes first: what a later copy of a control
database knows beyond it does no harm, while the other way round an account would miss its schema.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec

from muster.core import cluster_backup, passphrase
from muster.core.clock import Clock
from muster.core.cluster import Cluster, State
from muster.core.db import open_database
from muster.core.errors import Fault, InvalidRequest, Unavailable
from muster.core.files import make_folder, sync_folder, write_private
from muster.core.settings import PREFIX, Secret, Settings, SettingsError, surroundings
from muster.core.sql import Queries
from muster.core.version import VERSION
from muster.roles import metadata
from muster.roles.datadir import alone, kept_settings

Q = Queries("muster.roles.sql", "backup.sql")

ABOUT, SEALED = "backup.json", "secrets"
CONTEXT = "muster backup"
METADATA, CLUSTERS = "metadata", "clusters"
KEPT = ("secrets/token", "secrets/keys", "secrets/database-password")
CHUNK = 1024 * 1024
ELSEWHERE = (
    "These accounts have their control database on a registered server, which this backup does not "
    "contain: back it up with that server's own means."
)


class ClusterCopy(msgspec.Struct, frozen=True):
    folder: str
    major: int
    port: int | None


class About(msgspec.Struct, frozen=True, rename="camel"):
    """backup.json."""

    version: str
    made_at: str
    clusters: list[ClusterCopy]
    accounts_elsewhere: list[str]
    format: int = 1


class Hidden(msgspec.Struct, frozen=True):
    """What the passphrase seals."""

    digests: dict[str, str]
    files: dict[str, str]  # relative to the data directory


def main(data_dir: Path, folder: Path, phrase: Secret) -> int:
    try:
        about = asyncio.run(Backup(data_dir.absolute(), folder.absolute(), phrase).run())
    except (Fault, SettingsError, OSError) as error:
        print(f"muster backup: {error}", file=sys.stderr)
        return 1
    print(f"{len(about.clusters)} clusters are in {folder}.")
    if about.accounts_elsewhere:
        print("\n  ".join([ELSEWHERE, *about.accounts_elsewhere]))
    return 0


class Backup:
    def __init__(self, root: Path, folder: Path, phrase: Secret) -> None:
        self.root = root
        self.folder = folder
        self.phrase = phrase
        self.clock = Clock()

    async def run(self) -> About:
        """The folder is there as a whole afterwards, or not at all."""
        if not (self.root / METADATA / "data").is_dir():
            raise InvalidRequest(
                f"{self.root} has no metadata database. --data-dir names the data directory of a "
                "`muster up`; an installation whose metadata database is elsewhere is backed up "
                "with the means of that server.",
                code="NoDataDirectory",
            )
        passphrase.seal(self.phrase, b"", CONTEXT)  # refused before anything is copied
        refuse_content(self.folder)
        draft = self.folder.with_name(f".{self.folder.name}.{secrets.token_hex(4)}")
        make_folder(draft)
        try:
            with self._not_started_meanwhile():
                about = await self._write(draft)
            draft.rename(self.folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(self.folder.parent)
        return about

    async def _write(self, draft: Path) -> About:
        made_at = self.clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        files = self._files()
        places = sorted((self.root / CLUSTERS).glob("[!.]*"))  # those made later are no part of it
        copies, elsewhere = [], []
        for place in [self.root / METADATA, *places]:
            cluster = Cluster(place, clock=self.clock)
            name = str(place.relative_to(self.root))
            if (await cluster.status()).state is State.ABSENT:
                continue  # of a server that is being made or deleted
            async with self._running(cluster):
                if name == METADATA:
                    elsewhere = await self._elsewhere(cluster, {each.name for each in places})
                await cluster_backup.take(cluster, draft / name)
            copies.append(ClusterCopy(name, cluster.binaries().major, cluster.port))
            files[f"{name}/superuser"] = (place / "superuser").read_text(encoding="ascii")
            print(f"  {name}  {_megabytes(draft / name):.1f} MB", flush=True)
        about = About(VERSION, made_at, copies, elsewhere)
        (draft / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
        digests = {name: digest(draft / name) for name in names(draft)}
        hidden = msgspec.json.encode(Hidden(digests, files))
        write_private(draft / SEALED, passphrase.seal(self.phrase, hidden, CONTEXT))
        await asyncio.to_thread(os.sync)
        return about

    @contextlib.contextmanager
    def _not_started_meanwhile(self) -> Iterator[None]:
        """Clusters that we start ourselves belong to us; a `muster up` that runs keeps its own running."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(Unavailable):
                stack.enter_context(alone(self.root / "lock"))
            yield

    @contextlib.asynccontextmanager
    async def _running(self, cluster: Cluster) -> AsyncIterator[None]:
        stopped = (await cluster.status()).state is State.STOPPED
        await cluster.start()
        try:
            yield
        finally:
            if stopped:
                await cluster.stop()

    async def _elsewhere(self, cluster: Cluster, here: set[str]) -> list[str]:
        """Accounts whose server is no cluster of this directory."""
        settings = Settings(database_url=cluster.superuser_url(metadata.NAME), pool_size=1)
        database = await open_database(settings, application="muster-backup")
        try:
            rows = await database.fetch(Q.accounts)
        finally:
            await database.close()
        return [row["id"] for row in rows if str(row["server_uid"]) not in here]

    def _files(self) -> dict[str, str]:
        """The private files; the keys as they are in use, wherever the operator keeps them."""
        tls = [f"tls/{each.name}" for each in sorted((self.root / "tls").glob("[!.]*"))]
        found = {
            name: (self.root / name).read_text(encoding="utf-8")
            for name in (*KEPT, *tls)
            if (self.root / name).exists()
        }
        wanted = (PREFIX + "KEYS", PREFIX + "KEYS_FILE")
        environment = kept_settings(self.root) or surroundings()
        ours = {name: environment[name] for name in wanted if environment.get(name)}
        keys = Settings.load(ours | {PREFIX + "DATABASE_URL": "unused"}).keys
        if keys is not None:
            found["secrets/keys"] = keys.reveal()
        if "secrets/keys" not in found:
            raise InvalidRequest(
                f"{self.root / 'secrets' / 'keys'} is missing: without the envelope keys the backup "
                "could not be used. Set MUSTER_KEYS_FILE as for `muster up`.",
                code="EnvelopeKeyMissing",
            )
        return found


def refuse_content(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidRequest(
            f"{folder} is not empty. Name a folder that does not exist yet.", code="FolderNotEmpty"
        )


def names(folder: Path) -> list[str]:
    """Every file below the folder, but for what is sealed."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(name for path in paths if (name := str(path.relative_to(folder))) != SEALED)


def digest(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            sha.update(chunk)
    return sha.hexdigest()


def read_about(folder: Path) -> About:
    try:
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{folder} is no backup: {error}", code="NoBackup") from error
    if about.format != 1:
        raise InvalidRequest(
            f"The backup in {folder} has format {about.format}; Muster {VERSION} reads format 1.",
            code="BackupFormatUnknown",
        )
    return about


def read_hidden(folder: Path, phrase: Secret) -> Hidden:
    """Opened, and every file compared with its digest."""
    try:
        sealed = (folder / SEALED).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{folder} is no backup: {error}", code="NoBackup") from error
    hidden = msgspec.json.decode(passphrase.open_sealed(phrase, sealed, CONTEXT), type=Hidden)
    found = {name: digest(folder / name) for name in names(folder)}
    changed = sorted(
        name
        for name in found.keys() | hidden.digests.keys()
        if found.get(name) != hidden.digests.get(name)
    )
    if changed:
        raise InvalidRequest(
            f"The backup in {folder} is not what was written: {', '.join(changed[:5])}.",
            code="BackupChanged",
        )
    return hidden


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6
