"""docs/how-to/backup-and-restore.md: an installation that a job ran on goes on from its backup."""

from tests.docs.conftest import PASSWORD, access
from tests.support.pages import page
from tests.support.shell import commands, shell
from tests.support.stack import a_server, an_account, muster_up, until


def test_a_restored_installation_goes_on(tmp_path, muster):
    a_server(muster)
    account = an_account(muster, "nightly")
    phrase = tmp_path / "backup-passphrase"
    phrase.write_text(PASSWORD)
    folder = tmp_path / "backups"
    folder.mkdir()
    restored = tmp_path / "restored"
    restored.mkdir()
    own = {"/backups": str(folder), "~/backup-passphrase": str(phrase)}

    with page("docs/how-to/backup-and-restore.md") as told, shell(tmp_path) as bash:
        section = "One machine: `muster up`"
        backup = told.take(section)
        bash.block(
            backup.with_(own | {"muster backup": f"muster backup --data-dir {muster.folder}"})
        )
        assert (folder / "2026-11-19" / "backup.json").exists()

        restore = told.take(section).with_(own | {"/var/lib/muster-new": f"{restored}/data"})
        made, started = commands(restore)
        bash.block(made)
        assert started == f"muster up --data-dir {restored}/data"
        with muster_up(restored) as again, shell(restored, **access(again, "nightly")) as other:
            assert again.get(account)["properties"]["state"] == "Disabled"
            other.block(told.take(section).with_({"ACCOUNT": "nightly"}))
            until(lambda: again.get(account)["properties"]["state"] == "Ready", seconds=60)
            assert again.get(account)["properties"]["paused"] is False
