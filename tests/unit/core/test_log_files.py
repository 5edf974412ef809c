"""A log is emptied in place, its last part is kept, and only its user can read either part."""

import fcntl
import os
import resource
import stat

from muster.core import log_files


def test_the_last_part_is_kept_once_and_the_writer_goes_on(tmp_path):
    log = tmp_path / "api.log"
    with log.open("ab") as writer:
        for text in (b"a" * 101, b"-" * 7 + b"b" * 100):
            writer.write(text)
            writer.flush()
            log_files.rotate(log, limit=100)
        writer.write(b"c" * 50)
        writer.flush()
        log_files.rotate(log, limit=100)

    assert log.read_bytes() == b"c" * 50
    assert log_files.older(log).read_bytes() == b"b" * 100
    assert sorted(each.name for each in tmp_path.iterdir()) == ["api.log", "api.log.1"]
    assert stat.S_IMODE(log_files.older(log).stat().st_mode) == 0o600


def test_lines_that_arrive_during_the_copy_are_kept(tmp_path, monkeypatch):
    log = tmp_path / "api.log"
    log.write_bytes(b"a" * 101)
    replace = os.replace

    def written_meanwhile(self, target):
        with log.open("ab") as writer:
            writer.write(b"late")
        replace(self, target)
        return target

    monkeypatch.setattr(type(log), "replace", written_meanwhile)
    log_files.rotate(log, limit=100)

    assert (log.read_bytes(), log_files.older(log).read_bytes()) == (b"", b"a" * 100 + b"late")


def test_a_log_that_is_not_there_yet_is_none_of_its_business(tmp_path):
    log_files.rotate(tmp_path / "none.log", limit=0)

    assert list(tmp_path.iterdir()) == []


def test_without_room_for_the_older_part_the_log_is_emptied_all_the_same(tmp_path):
    """The system lets no file grow beyond 50 bytes, so the copy fails after its beginning."""
    log = tmp_path / "api.log"
    log.write_bytes(b"a" * 101)
    log_files.older(log).write_bytes(b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    try:
        log_files.rotate(log, limit=100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (log.read_bytes(), log_files.older(log).read_bytes()) == (b"", b"before")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["api.log", "api.log.1"]


def test_without_a_file_for_the_older_part_the_log_is_emptied_all_the_same(tmp_path):
    log = tmp_path / "api.log"
    log.write_bytes(b"a" * 101)
    (tmp_path / ".api.log.1").mkdir()  # the copy can't be opened

    log_files.rotate(log, limit=100)

    assert log.read_bytes() == b""


def test_a_log_that_another_process_rotates_is_left_to_it(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"a" * 101)
    with log.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        log_files.rotate(log, limit=100)
        assert log.read_bytes() == b"a" * 101
        assert not log_files.older(log).exists()

    log_files.rotate(log, limit=100)

    assert log.read_bytes() == b""
