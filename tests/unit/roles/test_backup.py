"""The folder of a backup: what is refused before a data directory is made of it."""

import msgspec
import pytest

from muster.core import passphrase
from muster.core.errors import InvalidRequest
from muster.core.settings import Secret
from muster.roles import backup, restore

PHRASE = Secret("correct horse battery")


@pytest.fixture
def folder(tmp_path):
    """A backup without a cluster."""
    made = tmp_path / "backup"
    (made / "metadata").mkdir(parents=True)
    (made / "metadata" / "base.tar.gz").write_bytes(b"archive")
    about = backup.About("0.1.0", "2026-01-01T00:00:00Z", [], ["/subscriptions/s1/elsewhere"])
    (made / backup.ABOUT).write_bytes(msgspec.json.encode(about))
    digests = {name: backup.digest(made / name) for name in backup.names(made)}
    hidden = backup.Hidden(digests, {"secrets/keys": "k1:key", "tls/ca.pem": "certificate"})
    sealed = passphrase.seal(PHRASE, msgspec.json.encode(hidden), backup.CONTEXT)
    (made / backup.SEALED).write_text(sealed)
    return made


async def test_the_private_files_are_back_for_their_owner_alone(folder, tmp_path):
    root = tmp_path / "data"

    about = await restore.restore(folder, root, PHRASE)

    assert about.accounts_elsewhere == ["/subscriptions/s1/elsewhere"]
    assert (root / "secrets" / "keys").read_text() == "k1:key"
    assert (root / "tls" / "ca.pem").read_text() == "certificate"
    assert (root / "secrets" / "keys").stat().st_mode & 0o777 == 0o600
    assert (root / restore.MARKER).exists()


def change(folder):
    (folder / "metadata" / "base.tar.gz").write_bytes(b"another")


def remove(folder):
    (folder / "metadata" / "base.tar.gz").unlink()


def add(folder):
    (folder / "metadata" / "more").write_bytes(b"")


def change_what_it_is(folder):
    text = (folder / backup.ABOUT).read_text()
    (folder / backup.ABOUT).write_text(text.replace("2026", "2025"))


def of_another_format(folder):
    text = (folder / backup.ABOUT).read_text()
    (folder / backup.ABOUT).write_text(text.replace('"format":1', '"format":2'))


def no_secrets(folder):
    (folder / backup.SEALED).unlink()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (change, "BackupChanged"),
        (remove, "BackupChanged"),
        (add, "BackupChanged"),
        (change_what_it_is, "BackupChanged"),
        (of_another_format, "BackupFormatUnknown"),
        (no_secrets, "NoBackup"),
        (lambda folder: (folder / backup.ABOUT).unlink(), "NoBackup"),
    ],
)
async def test_what_is_not_as_it_was_written_is_refused(folder, tmp_path, spoil, code):
    spoil(folder)

    with pytest.raises(InvalidRequest) as refused:
        await restore.restore(folder, tmp_path / "data", PHRASE)

    assert refused.value.code == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup"]


async def test_another_passphrase_is_refused(folder, tmp_path):
    with pytest.raises(InvalidRequest, match="passphrase is wrong"):
        await restore.restore(folder, tmp_path / "data", Secret("another one of them"))

    assert not (tmp_path / "data").exists()


async def test_a_data_directory_in_use_is_refused(folder, tmp_path):
    (tmp_path / "data" / "secrets").mkdir(parents=True)

    with pytest.raises(InvalidRequest) as refused:
        await restore.restore(folder, tmp_path / "data", PHRASE)

    assert refused.value.code == "FolderNotEmpty"


async def test_a_folder_without_metadata_database_is_no_data_directory(tmp_path):
    with pytest.raises(InvalidRequest, match="--data-dir"):
        await backup.Backup(tmp_path, tmp_path / "backup", PHRASE).run()

    assert list(tmp_path.iterdir()) == []
