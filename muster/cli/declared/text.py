"""Documents as YAML: SQL as block scalars, stable order, quotes where another reader would see no text."""

import difflib
from typing import Any

import yaml

from muster.cli.output import GREEN, PLAIN, RED, clean

ENDLESS = 1_000_000  # columns: a long text stays in one line
CYAN = "\x1b[36m"


class Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - its parent's
        """Items of a list are indented."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - its parent's
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """PyYAML itself falls back to quotes where a block could not have the text."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def dump(document: dict[str, Any]) -> str:
    dumped: str = yaml.dump(
        document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=ENDLESS
    )
    return dumped


def difference(
    before: dict[str, Any], after: dict[str, Any], names: tuple[str, str], *, coloured: bool
) -> list[str]:
    """A unified diff in lines; nothing in them that a terminal would obey."""
    old, new = (dump(each).splitlines() if each else [] for each in (before, after))
    lines = [clean(each) for each in difflib.unified_diff(old, new, *names, lineterm="")]
    return [_coloured(each) for each in lines] if coloured else lines


def _coloured(line: str) -> str:
    colour = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1])
    return f"{colour}{line}{PLAIN}" if colour and line[:3] not in {"+++", "---"} else line
