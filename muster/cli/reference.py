"""`muster config reference`: every setting with its default and meaning, read off the struct itself."""

import inspect
import re
from dataclasses import MISSING, fields

from muster.core import settings

LINE = re.compile(r"^    (\w+): ([^=#]+?)(?: = (.+?))?(?:  # (.+))?$")
HEADING = re.compile(r"^    # (.+)$")


def markdown() -> str:
    lines = [
        "# Settings",
        "",
        "Environment variables, read once at the start of a process; all wrong values are reported together.",
        "A secret can be given as `NAME` or, better, as a file: `NAME_FILE`. Durations: `500ms`, `30s`, `10m`, `24h`.",
        "Lists are separated by commas. `muster config print` shows the effective values.",
    ]
    required = {f.name for f in fields(settings.Settings) if f.default is MISSING}
    for line in inspect.getsource(settings.Settings).splitlines():
        if "def " in line:
            break
        if heading := HEADING.match(line):
            lines += [
                "",
                f"## {heading[1]}",
                "",
                "| setting | default | meaning |",
                "|---|---|---|",
            ]
        elif match := LINE.match(line):
            name, hint, default, meaning = match.groups()
            shown = "required" if name in required else f"`{_plain(default)}`"
            secret = " (secret)" if "Secret" in hint else ""
            lines.append(f"| `MUSTER_{name.upper()}`{secret} | {shown} | {meaning or ''} |")
    return "\n".join(lines) + "\n"


def _plain(default: str) -> str:
    duration = re.fullmatch(r"seconds\(([\d.]+)\)", default)
    if duration:
        return duration[1] + "s"
    if default.isupper():  # a constant
        return settings.shown(getattr(settings, default))
    plain = {"None": "unset", "()": "empty"}.get(default, default)
    return re.sub(r'^\(|,?\)$|"', "", plain)
