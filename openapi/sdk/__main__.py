"""Writes the sources of both SDKs: `python -m openapi.sdk FOLDER`."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from openapi.sdk import document, layout, python, typescript

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def main(folder: Path) -> None:
    whole = json.loads((ROOT / "openapi" / "openapi.json").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    models = document.Models(whole["components"]["schemas"])
    operations = document.operations(whole, models)
    write_python(folder / "python", version, models, operations)
    write_typescript(folder / "typescript", version, models, operations)


def write_python(
    folder: Path, version: str, models: document.Models, operations: tuple[document.Operation, ...]
) -> None:
    package = fresh(folder, "python") / "muster_sdk"
    top = layout.scopes(operations)
    package.joinpath("_version.py").write_text(f'VERSION = "{version}"\n')
    package.joinpath("models.py").write_text(python.models(models, operations))
    package.joinpath("aio", "_groups.py").write_text(python.groups(top))
    package.joinpath("aio", "_client.py").write_text(python.scopes(top))
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length=100", package],
        check=True,
    )
    package.joinpath("sync").mkdir()
    for each in sorted(package.glob("aio/*.py")):
        package.joinpath("sync", each.name).write_text(python.synchronous(each.read_text()))


def write_typescript(
    folder: Path, version: str, models: document.Models, operations: tuple[document.Operation, ...]
) -> None:
    source = fresh(folder, "typescript") / "src"
    source.joinpath("version.ts").write_text(f'export const VERSION = "{version}";\n')
    source.joinpath("models.ts").write_text(typescript.models(models, operations))
    source.joinpath("clients.ts").write_text(typescript.clients(models, layout.scopes(operations)))
    package = folder / "package.json"
    package.write_text(package.read_text().replace('"version": "0.0.0"', f'"version": "{version}"'))


def fresh(folder: Path, language: str) -> Path:
    """The parts that are written by hand, in an empty folder."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(HERE / "runtime" / language, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    return folder


if __name__ == "__main__":
    main(Path(sys.argv[1]))
