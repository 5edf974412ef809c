"""Unit files as systemd reads them: with the drop-ins of their prefix, and specifiers."""

import shlex
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "infra/systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
DROP_IN = FOLDER / "muster-.service.d/10-common.conf"
Unit = dict[str, dict[str, list[str]]]  # section → directive → values in order


def parse(path: Path) -> Unit:
    unit: Unit = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, value = line.split("=", 1)
            unit[section][name].append(value)
    return unit


def service(name: str) -> Unit:
    """A unit with its drop-in, whose values come after its own."""
    unit = parse(FOLDER / name)
    for section, directives in parse(DROP_IN).items():
        for directive, values in directives.items():
            unit[section][directive] += values
    return unit


def environment(unit: Unit, specifiers: dict[str, str]) -> dict[str, str]:
    """EnvironmentFile first, as for systemd it wins over Environment; here no name is in both."""
    found = {}
    for line in (FOLDER / "muster.env").read_text().splitlines():
        if line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found[name] = value
    for line in unit["Service"]["Environment"]:
        name, value = expand(line, specifiers).split("=", 1)
        assert name not in found, f"{name} is set twice"
        found[name] = value
    return found


def expand(text: str, specifiers: dict[str, str]) -> str:
    for name, value in specifiers.items():
        text = text.replace(f"%{name}", value)
    return text


def command(unit: Unit, specifiers: dict[str, str]) -> list[str]:
    [line] = unit["Service"]["ExecStart"]
    return shlex.split(expand(line, specifiers))
