"""A log is emptied in place, loses nothing, and only its user can read either part."""

import os
import stat

from muster.core import log_files


def test_what_was_written_is_kept_once_and_the_writer_goes_on(tmp_path):
    log = tmp_path / "api.log"
    with log.open("ab") as writer:
        for text in (b"a" * 101, b"b" * 102):
            writer.write(text)
            writer.flush()
            log_files.rotate(log, limit=100)
        writer.write(b"c" * 50)
        writer.flush()
        log_files.rotate(log, limit=100)

    assert log.read_bytes() == b"c" * 50
    assert log_files.older(log).read_bytes() == b"b" * 102
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

    assert (log.read_bytes(), log_files.older(log).read_bytes()) == (b"", b"a" * 101 + b"late")


def test_a_log_that_is_not_there_yet_is_none_of_its_business(tmp_path):
    log_files.rotate(tmp_path / "none.log", limit=0)

    assert list(tmp_path.iterdir()) == []
