"""An installation made by the commands of the Containerfile, outside a container."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "infra/containers/Containerfile"
FOLDERS = ("/opt/build", "/opt/muster", "/dist")  # of the build stage


def instructions() -> list[tuple[str, str]]:
    """Of the Containerfile: each with its words, continued lines joined."""
    text = re.sub(r"\\\n", "", CONTAINERFILE.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = [[]]
    for name, words in instructions():
        if name == "FROM":
            found.append([])
        found[-1].append((name, words))
    return found[1:]


def install(folder: Path) -> Path:
    """Runs COPY and RUN of the build stage below `folder`; the folder that stands for /opt/muster."""
    source = folder / "src"
    source.mkdir()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name, words in stages()[0]:
        if name == "COPY":
            *files, target = shlex.split(words)
            for file in files:
                copy(
                    ROOT / file,
                    source / target if len(files) == 1 and target != "./" else source / file,
                )
        if name == "RUN":
            subprocess.run(
                ["sh", "-euc", at(words, folder)],
                cwd=source,
                env=environment,
                check=True,
                timeout=600,
            )
    return folder / "opt/muster"


def at(text: str, folder: Path) -> str:
    text = text.replace("--no-cache ", "").replace(
        "--no-cache-dir ", ""
    )  # what was fetched before will do
    for each in FOLDERS:
        text = re.sub(rf"(?<![\w/]){each}\b", f"{folder}{each}", text)
    return text


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def image_environment() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, words in stages()[1]:
        if name == "ENV":
            found |= dict(word.split("=", 1) for word in shlex.split(words))
    return found
