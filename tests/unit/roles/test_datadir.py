"""`muster up`: what its flags add to the settings, and what it keeps for `muster config print`."""

import os
import stat
from pathlib import Path

import pytest

from muster.cli import main as cli
from muster.core.settings import Settings
from muster.roles.datadir import DataDir, kept_settings


@pytest.fixture(autouse=True)
def a_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MUSTER_DATABASE_URL", "postgresql://u:canary@db.example/muster")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


async def started(root: Path, *allow: str) -> tuple[DataDir, Settings]:
    root.mkdir(parents=True, exist_ok=True)
    home = DataDir(root, "127.0.0.1:0", tls=False, allow_target=allow)
    settings = await home.settings()
    home.keep_settings(home.environment(settings))
    return home, settings


async def test_targets_that_are_allowed_by_flag_join_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUSTER_TARGET_ALLOW", "169.254.1.1")

    _, settings = await started(tmp_path / "d", "127.0.0.1:5432", "[::1]:5433", "db-7:5432")

    assert settings.target_allow == ("169.254.1.1", "127.0.0.1:5432", "[::1]:5433", "db-7:5432")


async def test_localhost_is_both_addresses_that_it_means(tmp_path: Path) -> None:
    _, settings = await started(tmp_path / "d", "localhost:5432", "localhost")

    assert settings.target_allow == ("127.0.0.1:5432", "[::1]:5432", "127.0.0.1", "[::1]")


async def test_without_the_flag_the_environment_stays_as_it_is(tmp_path: Path) -> None:
    _, settings = await started(tmp_path / "d")

    assert settings.target_allow == ()


async def test_config_print_beside_up_shows_its_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    root = tmp_path / "xdg" / "muster"
    monkeypatch.setenv("MUSTER_LEASE", "45s")
    home, _ = await started(root, "127.0.0.1:5432")
    for name in ("MUSTER_LEASE", "MUSTER_DATABASE_URL"):
        monkeypatch.delenv(name)

    assert cli.main(["config", "print"]) == 0

    out, err = capsys.readouterr()
    assert "MUSTER_LEASE=45s\n" in out and "MUSTER_TARGET_ALLOW=127.0.0.1:5432\n" in out
    assert "MUSTER_DATABASE_URL=***\n" in out and f"MUSTER_DATA_DIR={root}\n" in out
    assert err == f"muster: the settings of the `muster up` in {root}\n"
    assert "canary" not in out + (root / "run" / "settings.json").read_text()
    assert stat.S_IMODE((root / "run" / "settings.json").stat().st_mode) == 0o600

    home.forget_settings()
    assert kept_settings(root) is None
    assert cli.main(["config", "print"]) == 1
    assert f"none runs in {root}" in capsys.readouterr().err


async def test_config_print_takes_another_data_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    await started(tmp_path / "d", "127.0.0.1:5432")

    assert cli.main(["config", "print", "--data-dir", str(tmp_path / "d")]) == 0
    assert "MUSTER_TARGET_ALLOW=127.0.0.1:5432\n" in capsys.readouterr().out
    assert cli.main(["config", "print", "--data-dir", str(tmp_path / "none")]) == 1
