"""docs/how-to/upgrade.md: its commands, around a stop and a start with the version that is here.

That migrations reach older databases is tested in tests/integration/test_migrate.py and test_accounts.py.
"""

from muster.core.version import VERSION
from tests.docs.conftest import PASSWORD, access
from tests.support.pages import page
from tests.support.shell import shell
from tests.support.stack import a_server, an_account, muster_up, until


def test_an_installation_comes_back_with_the_version_that_was_installed(tmp_path):
    (tmp_path / "phrase").write_text(PASSWORD)
    (tmp_path / "backups").mkdir()
    section = "With `muster up`"
    with page("docs/how-to/upgrade.md") as told:
        with muster_up(tmp_path) as old, shell(tmp_path, **access(old)) as bash:
            a_server(old)
            account = an_account(old, "nightly")
            own = {"muster backup": f"muster backup --data-dir {old.folder}"}
            own |= {"/backups": f"{tmp_path}/backups", "~/backup-passphrase": "phrase"}
            bash.block(told.take(section).with_(own))
            assert (tmp_path / "backups" / "before-upgrade" / "backup.json").exists()

        with muster_up(tmp_path) as new, shell(tmp_path, **access(new)) as bash:
            until(lambda: new.get(account)["properties"]["state"] == "Ready", seconds=90)
            version, accounts, _ = bash.block(told.take(section).text).values()
            assert VERSION in version
            assert "Ready" in accounts and VERSION in accounts
        assert "migrations applied" not in (tmp_path / "up.log").read_text()

        migrate = told.take("With separate processes").text
        assert migrate.strip() == "muster migrate"


def test_migrate_makes_a_metadata_database_and_changes_nothing_the_second_time(
    tmp_path, own_server
):
    own_server.query("postgres", "create database metadata")
    root = own_server.server.root
    keys = "k1:" + "A" * 43 + "="
    url = f"{own_server.server.url('metadata', root)}?sslmode=disable"
    with shell(tmp_path, MUSTER_DATABASE_URL=url, MUSTER_KEYS=keys) as bash:
        first, again = bash.run("muster migrate"), bash.run("muster migrate")

    assert (first.code, again.code) == (0, 0)
    assert "0001_resources.sql" in first.output
    assert again.output == "0 migrations applied."
    [row] = own_server.query("metadata", "select count(*) from migration")
    assert row[0] > 1
