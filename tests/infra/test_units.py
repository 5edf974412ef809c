"""Unit files: by systemd's own checks where it is installed, and by rules of ours everywhere."""

import dataclasses
import re
import shutil
import subprocess

import pytest

from muster.cli.operators import ROLES
from muster.core.settings import PREFIX, Secret, Settings
from tests.infra.units import DROP_IN, FOLDER, UNITS, environment, parse, service

KNOWN = {
    "Unit": {"Description", "After", "Wants", "PartOf", "StartLimitIntervalSec"},
    "Install": {"WantedBy"},
    "Service": {
        "Type", "ExecStart", "User", "Group", "Restart", "RestartSec", "KillMode", "TasksMax",
        "EnvironmentFile", "Environment", "LoadCredential", "UMask", "LimitNOFILE", "LimitCORE",
        "RuntimeDirectory", "RuntimeDirectoryMode", "StateDirectory", "StateDirectoryMode",
        "CapabilityBoundingSet", "AmbientCapabilities", "NoNewPrivileges", "ProtectSystem",
        "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateUsers", "ProtectClock",
        "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules",
        "ProtectKernelTunables", "ProtectProc", "RestrictAddressFamilies", "RestrictNamespaces",
        "RestrictRealtime", "RestrictSUIDSGID", "RemoveIPC", "LockPersonality",
        "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber",
    },
}  # fmt: skip
FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
WORST = 2.0  # of 10, by `systemd-analyze security`; 0 is the best
SYSTEMD = shutil.which("systemd-analyze")
SPECIFIERS = {"d": "/run/credentials", "t": "/run", "S": "/var/lib"}


def test_each_role_has_a_unit_that_the_target_starts():
    wanted = parse(FOLDER / "muster.target")["Unit"]["Wants"][0].split()

    assert set(wanted) == {f"muster-{role}.service" for role in ROLES}
    assert set(UNITS) == {*wanted, "muster-migrate.service"}


@pytest.mark.parametrize("name", UNITS)
def test_a_database_that_is_away_at_boot_keeps_no_unit_down(name):
    unit = service(name)
    migrates = name == "muster-migrate.service"

    assert "Requires" not in unit["Unit"], (
        "a migration that failed once would fail the role as well"
    )
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert unit["Service"]["Restart"] == ["on-failure" if migrates else "always"]
    for directive in ("Wants", "After"):
        assert ("muster-migrate.service" in unit["Unit"][directive]) is not migrates


@pytest.mark.parametrize(
    "path",
    [*(FOLDER / name for name in UNITS), DROP_IN, FOLDER / "muster.target"],
    ids=lambda path: path.name,
)
def test_each_directive_is_known_in_its_section(path):
    for section, directives in parse(path).items():
        assert set(directives) <= KNOWN[section], section
        assert all(
            all(values) or name in ("CapabilityBoundingSet", "AmbientCapabilities")
            for name, values in directives.items()
        )


@pytest.mark.parametrize("name", UNITS)
def test_each_variable_is_a_setting_and_each_secret_a_credential(name):
    unit = service(name)
    credentials = {line.split(":")[0] for line in unit["Service"]["LoadCredential"]}
    used = set()
    for variable, value in environment(unit, {}).items():
        if not variable.startswith(PREFIX):
            continue
        field = variable.removeprefix(PREFIX).lower()
        plain = field.removesuffix("_file") if field not in FIELDS else field
        assert plain in FIELDS, variable
        secret = "Secret" in str(FIELDS[plain].type) or FIELDS[plain].type is Secret
        assert secret == (plain != field), (
            f"{variable}: a secret comes as a file, all else as a value"
        )
        used |= set(re.findall(r"%d/([\w-]+)", value))

    assert used == credentials, "every credential is used, and no other"


def test_only_migrations_get_the_owner_and_only_the_api_gets_the_token():
    has = {name: " ".join(service(name)["Service"]["LoadCredential"]) for name in UNITS}

    assert [name for name in UNITS if "owner" in has[name]] == ["muster-migrate.service"]
    assert [name for name in UNITS if "token" in has[name]] == ["muster-api.service"]


@pytest.fixture
def root(tmp_path):
    """A file system with the units in their place and the program that they start."""
    place = tmp_path / "etc/systemd/system"
    shutil.copytree(FOLDER, place)
    program = tmp_path / "opt/muster/bin/muster"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return tmp_path


@pytest.mark.skipif(
    SYSTEMD is None, reason="systemd-analyze is not installed; the rules above hold"
)
def test_systemd_finds_nothing_wrong(root):
    units = [f"/etc/systemd/system/{name}" for name in [*UNITS, "muster.target"]]
    said = subprocess.run(
        [SYSTEMD, "verify", f"--root={root}", "--man=no", "--generators=no", *units],
        capture_output=True, text=True,
    )  # fmt: skip
    # Units of systemd itself are not in this root.
    ours = [
        line for line in said.stderr.splitlines()
        if "muster" in line and not re.search(r"(sysinit|basic|shutdown|network-online|multi-user)\.target", line)
    ]  # fmt: skip
    assert ours == []


@pytest.mark.skipif(
    SYSTEMD is None, reason="systemd-analyze is not installed; the rules above hold"
)
@pytest.mark.parametrize("name", UNITS)
def test_systemd_calls_each_unit_well_confined(root, name):
    said = subprocess.run(
        [SYSTEMD, "security", "--offline=yes", f"--root={root}", "--no-pager", name],
        capture_output=True, text=True,
    )  # fmt: skip
    found = re.search(r"exposure level for \S+: (\d+\.\d+)", said.stdout)
    assert found, said.stdout + said.stderr
    assert float(found[1]) <= WORST, said.stdout
