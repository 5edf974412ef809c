"""A copy of a cluster while it is in use: PostgreSQL's own base backup, as compressed archives.

await take(cluster, folder)      # base.tar.gz, pg_wal.tar.gz and backup_manifest in `folder`
await unpack(folder, cluster)    # a data directory that recovers from them at its next start
"""

import asyncio
import os
import tarfile
from pathlib import Path

from muster.core.cluster import HOST, SUPERUSER, Cluster
from muster.core.errors import Unavailable
from muster.core.files import make_folder, write_private
from muster.core.privileges import Account, run_as

ARCHIVES = {"base.tar.gz": ".", "pg_wal.tar.gz": "pg_wal"}


async def take(cluster: Cluster, folder: Path) -> None:
    """The cluster runs. Our own login reads it; the password goes by a file that is removed again."""
    make_folder(folder)
    password = (cluster.directory / "superuser").read_text(encoding="ascii")
    pass_file = folder / "passfile"
    write_private(pass_file, f"*:*:*:{SUPERUSER}:{password}\n")
    words = {
        "host": HOST,
        "port": str(cluster.port),
        "user": SUPERUSER,
        "passfile": str(pass_file),
        "sslmode": "disable",
    }
    argv = [
        str(cluster.binaries().bin / "pg_basebackup"),
        f"--dbname={' '.join(f'{key}={_quoted(word)}' for key, word in words.items())}",
        f"--pgdata={folder / 'copy'}",
        "--format=tar",
        "--gzip",
        "--wal-method=stream",
        "--checkpoint=fast",
        "--no-password",
    ]
    try:
        ourselves = Account(os.geteuid(), os.getegid())
        code, output = await run_as(ourselves, argv, ())
        if code != 0:
            raise Unavailable(
                f"The cluster in {cluster.directory} could not be copied: {output.strip()[-1000:]}",
                code="ClusterNotCopied",
            )
    finally:
        pass_file.unlink(missing_ok=True)
    for file in sorted((folder / "copy").iterdir()):
        file.rename(folder / file.name)
    (folder / "copy").rmdir()


async def unpack(folder: Path, cluster: Cluster, *, superuser: str, port: int | None) -> None:
    """The cluster's folder is new; the account that runs PostgreSQL here owns the data directory."""
    make_folder(cluster.directory, 0o700 if cluster.account.is_us else 0o711)
    await asyncio.to_thread(_extract, folder, cluster)
    write_private(cluster.directory / "superuser", superuser)
    if port is not None:
        write_private(cluster.directory / "port", str(port))


def _extract(folder: Path, cluster: Cluster) -> None:
    make_folder(cluster.data)
    for name, place in ARCHIVES.items():
        with tarfile.open(folder / name) as archive:
            archive.extractall(cluster.data / place, filter="data")
    for path in (cluster.data, *cluster.data.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
        if not cluster.account.is_us:
            os.chown(path, cluster.account.uid, cluster.account.gid)


def _quoted(word: str) -> str:
    """A value in a connection string of libpq."""
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
