import pytest

from muster.cli import main as cli
from muster.roles import process


@pytest.mark.parametrize("role", ["engine", "host"])
def test_a_workload_needs_its_start_file_and_no_settings_at_all(
    role, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(process, "set_limits", lambda: None)
    monkeypatch.setenv("MUSTER_LEASE", "soon")

    code = cli.main([role, "--data-dir", str(tmp_path), "--start-file", str(tmp_path / "none")])

    assert code == 2
    assert f"muster {role}: the start file can't be read" in capsys.readouterr().err
