from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from muster.core.settings import Secret, Settings, SettingsError

MINIMAL = {"MUSTER_DATABASE_URL": "postgresql://u:p@h/d"}


def test_defaults_and_one_required_value():
    settings = Settings.load(MINIMAL)

    assert settings.database_url.reveal() == "postgresql://u:p@h/d"
    assert settings.lease == timedelta(seconds=30)
    assert not settings.embedded


def test_everything_wrong_is_said_at_once():
    with pytest.raises(SettingsError) as refused:
        Settings.load({"MUSTER_LEASE": "soon", "MUSTER_POOL_SIZE": "x", "MUSTER_TYPO": "1"})

    for part in (
        "DATABASE_URL is required",
        "MUSTER_LEASE",
        "MUSTER_POOL_SIZE",
        "MUSTER_TYPO is not",
    ):
        assert part in str(refused.value)


def test_a_secret_has_a_file_form_and_nothing_else_has(tmp_path: Path):
    file = tmp_path / "url"
    file.write_text("postgresql://from-file\n")

    assert (
        Settings.load({"MUSTER_DATABASE_URL_FILE": str(file)}).database_url.reveal()
        == "postgresql://from-file"
    )
    with pytest.raises(SettingsError, match="either"):
        Settings.load(MINIMAL | {"MUSTER_DATABASE_URL_FILE": str(file)})
    with pytest.raises(SettingsError, match="only secrets"):
        Settings.load(MINIMAL | {"MUSTER_LISTEN_FILE": str(file)})
    with pytest.raises(SettingsError, match="MUSTER_KEYS"):
        Settings.load(MINIMAL | {"MUSTER_KEYS_FILE": str(tmp_path / "absent")})


@pytest.mark.parametrize(
    ("raw", "seconds"), [("500ms", 0.5), ("30s", 30), ("10m", 600), ("24h", 86_400), ("1d", 86_400), ("1.5s", 1.5)]
)  # fmt: skip
def test_durations(raw, seconds):
    assert Settings.load(MINIMAL | {"MUSTER_SWEEP": raw}).sweep == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "change",
    [
        {"step_limit": timedelta(seconds=30)},
        {"tls_cert": Path("x")},
        {"throttle": "sometimes"},
        {"vault_address": "https://v.test"},
        {"vault_address": "v.test", "vault_token": Secret("t")},
    ],
)
def test_values_that_do_not_go_together(change):
    with pytest.raises(SettingsError):
        replace(Settings.load(MINIMAL), **change)


def test_a_child_loads_the_same_values(tmp_path):
    settings = replace(
        Settings.load(MINIMAL),
        keys=Secret("a:b"), data_dir=tmp_path, locations=("a", "b"), sweep=timedelta(milliseconds=250),
        deadline_scale=0.5,
    )  # fmt: skip
    assert Settings.load(settings.environ()) == settings


def test_no_secret_prints_itself():
    settings = replace(Settings.load(MINIMAL), local_token=Secret("hunter2"))

    assert "hunter2" not in repr(settings)
    assert str(settings.local_token) == "***"
    assert settings.local_token != "hunter2"
    assert len({Secret("a"), Secret("a")}) == 1


def test_every_field_has_a_comment():
    source = Path(__import__("muster.core.settings", fromlist=["x"]).__file__).read_text()
    for field in fields(Settings):
        assert f"    {field.name}: " in source
