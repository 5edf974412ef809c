"""Pages of docs/reference/ that are generated: `make references` writes them, `--check` fails when one is stale."""

import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path("docs/reference")


def page(name: str, text: str, arguments: Sequence[str]) -> int:
    """The exit code: 1 when the page differs and is only checked."""
    file = FOLDER / name
    if "--check" not in arguments:
        file.write_text(text, encoding="utf-8")
        return 0
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{file} is stale: run `make references`.\n")
    return 1
