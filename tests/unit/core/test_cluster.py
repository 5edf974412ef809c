import os
import stat
from pathlib import Path

import pytest

from muster.core import binaries, privileges
from muster.core.binaries import Binaries
from muster.core.cluster import PORTS, Cluster, State, free
from muster.core.errors import InvalidRequest, Unavailable
from muster.core.files import make_folder, write_private
from muster.core.privileges import Account, prefix
from muster.core.process import Process, is_zombie

STRANGER = Account(uid=4_000_000, gid=4_000_000)


def test_the_newest_of_the_wheel_is_the_default() -> None:
    assert Binaries.find().major == 18
    assert Binaries.find().bin.parent.name == "pginstall18"


def test_a_major_that_is_not_here_is_refused_with_the_ones_that_are() -> None:
    with pytest.raises(Unavailable) as refused:
        Binaries.find(9)

    assert refused.value.code == "PostgresVersionNotAvailable"
    assert "available: 18, 16" in refused.value.message


def test_without_any_binaries_the_refusal_says_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "available", tuple)

    with pytest.raises(Unavailable, match="available: none"):
        Binaries.find()


def test_a_folder_that_others_cannot_enter_is_seen(tmp_path: Path) -> None:
    inner = make_folder(tmp_path / "closed" / "inner", 0o711)
    inner.parent.chmod(0o700)
    open_folder = Path("/usr/bin")

    assert not STRANGER.can_enter(inner)
    assert STRANGER.can_enter(open_folder)


def test_owner_and_group_bits_count_for_owner_and_group(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("")
    program.chmod(0o750)
    status = program.stat()

    assert Account(status.st_uid, 1).can_run(program)
    assert Account(4_000_000, status.st_gid).can_run(program)
    assert not Account(4_000_000, 4_000_000).can_run(program)


def test_ourselves_need_no_prefix() -> None:
    assert prefix(Account(os.geteuid(), os.getegid()), [Path("/")]) == []


def test_another_account_loses_every_right(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = prefix(Account(4_000_000, 4_000_000), [Path("/usr/bin")])

    assert "--no-new-privs" in argv
    assert "--ambient-caps=-all" in argv
    assert not [word for word in argv if "dac" in word or "securebits" in word]


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        ({"dac_read_search", "dac_override", "setpcap"}, "dac_read_search"),
        ({"dac_override", "setpcap"}, "dac_override"),
    ],
)
def test_a_closed_folder_is_passed_by_one_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: set[str], kept: str
) -> None:
    monkeypatch.setattr(privileges, "held", lambda: frozenset(held))
    tmp_path.chmod(0o700)

    argv = prefix(Account(4_000_000, 4_000_000), [tmp_path])

    assert f"--ambient-caps=-all,+{kept}" in argv
    assert f"--bounding-set=-all,+{kept}" in argv
    assert "--securebits=+no_setuid_fixup" in argv


def test_without_a_capability_the_advice_names_a_data_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "held", frozenset)
    tmp_path.chmod(0o700)

    with pytest.raises(InvalidRequest, match="--data-dir.*/var/lib/muster") as refused:
        prefix(Account(4_000_000, 4_000_000), [tmp_path])

    assert refused.value.code == "DataDirectoryNotReachable"


def test_without_setpriv_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges.shutil, "which", lambda _: None)

    with pytest.raises(InvalidRequest, match="setpriv is not installed"):
        prefix(Account(4_000_000, 4_000_000), [Path("/usr/bin")])


def test_programs_that_only_their_owner_may_run_are_opened(tmp_path: Path) -> None:
    program, text = tmp_path / "program", tmp_path / "text"
    for path, mode in ((program, 0o700), (text, 0o600)):
        path.write_text("")
        path.chmod(mode)

    privileges.make_runnable(tmp_path)

    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert stat.S_IMODE(text.stat().st_mode) == 0o600


def test_ports_stay_below_the_ephemeral_range() -> None:
    assert max(PORTS) < 32_768
    assert min(PORTS) > 1024


def test_a_port_in_use_is_not_free() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not free(taken.getsockname()[1])


async def test_a_folder_without_a_cluster_is_absent(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "none")

    assert (await cluster.status()).state is State.ABSENT
    assert cluster.port is None
    await cluster.stop()
    await cluster.destroy()
    with pytest.raises(Unavailable, match="no cluster"):
        await cluster.start()


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "{pid}\n", "-5\n", "4000000\n/x"])
async def test_a_pid_file_that_names_no_postmaster_of_ours_means_stopped(
    tmp_path: Path, text: str
) -> None:
    cluster = Cluster(tmp_path)
    cluster.data.mkdir()
    (cluster.data / "PG_VERSION").write_text("18\n")
    (cluster.data / "postmaster.pid").write_text(text.format(pid=os.getpid()))

    assert (await cluster.status()).state is State.STOPPED


async def test_a_cluster_of_an_unknown_major_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.data.mkdir()
    (cluster.data / "PG_VERSION").write_text("9\n")

    with pytest.raises(Unavailable, match="PostgreSQL 9 is needed"):
        await cluster.create()


def test_a_private_file_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_private_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "secret"

    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\udcff")

    assert list(tmp_path.iterdir()) == []


def test_a_process_is_its_pid_and_its_start() -> None:
    here = Process.find(os.getpid())

    assert here is not None
    assert here.alive
    assert not Process(here.pid, here.started + 1).alive
    assert here.works_in(Path.cwd())
    assert Process.find(4_194_305) is None
    assert not is_zombie(os.getpid())
