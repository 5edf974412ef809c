"""`muster restore`: a new data directory from a backup, and what `muster up` does when it first runs there.

Every account of a restored installation is disabled until it is acknowledged: jobs may have run since
the backup was made, and whether they run again is for people to decide.
"""

import asyncio
import json
import secrets
import shutil
import sys
from pathlib import Path

from fsm.account_steps import FROM_BACKUP
from muster.core import cluster_backup
from muster.core.cluster import Cluster
from muster.core.db import open_database
from muster.core.errors import Fault
from muster.core.files import make_folder, sync_folder, write_private
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries
from muster.roles import backup
from muster.roles.datadir import DataDir

Q = Queries("muster.roles.sql", "backup.sql")

MARKER = "restored.json"  # in a data directory that `muster up` has not taken over yet
NEXT = """\
Restored into {root}, as of {made_at}.
  muster up --data-dir {root}
Every account is disabled until you have looked at it. Pause it first if runs shall not go on at once:
  muster account pause ACCOUNT
  muster account acknowledge ACCOUNT"""


def main(folder: Path, data_dir: Path, phrase: Secret) -> int:
    try:
        about = asyncio.run(restore(folder.absolute(), data_dir.absolute(), phrase))
    except (Fault, OSError) as error:
        print(f"muster restore: {error}", file=sys.stderr)
        return 1
    print(NEXT.format(root=data_dir.absolute(), made_at=about.made_at))
    if about.accounts_elsewhere:
        print("\n  ".join([backup.ELSEWHERE, *about.accounts_elsewhere]))
    return 0


async def restore(folder: Path, root: Path, phrase: Secret) -> backup.About:
    """The data directory is there as a whole afterwards, or not at all."""
    about = backup.read_about(folder)
    backup.refuse_content(root)
    hidden = await asyncio.to_thread(backup.read_hidden, folder, phrase)
    draft = root.with_name(f".{root.name}.{secrets.token_hex(4)}")
    DataDir(draft, "", tls=False).make()
    try:
        make_folder(draft / backup.CLUSTERS, 0o711)
        for each in about.clusters:
            cluster = Cluster(draft / each.folder)
            superuser = hidden.files[f"{each.folder}/superuser"]
            await cluster_backup.unpack(
                folder / each.folder, cluster, superuser=superuser, port=each.port
            )
            cluster.binaries()  # refuses a major version that is not installed here
        for name, text in hidden.files.items():
            if not name.endswith("/superuser"):
                make_folder((draft / name).parent)
                write_private(draft / name, text)
        write_private(draft / MARKER, json.dumps({"madeAt": about.made_at}))
        draft.rename(root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(root.parent)
    return about


async def take_over(settings: Settings, root: Path) -> str | None:
    """Before any role starts: what ran when the backup was made does not run here. The backup's time."""
    marker = root / MARKER
    if not marker.exists():
        return None
    made_at: str = json.loads(marker.read_text(encoding="utf-8"))["madeAt"]
    database = await open_database(settings, application="muster-restore")
    try:
        async with database.transaction() as tx:
            for query in (Q.end_workloads, Q.forget_ended, Q.forget_launchers, Q.free_machines):
                await tx.execute(query)
            await tx.execute(Q.mark_accounts, {FROM_BACKUP: made_at})
    finally:
        await database.close()
    marker.unlink()
    sync_folder(root)
    return made_at
