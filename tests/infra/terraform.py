"""A folder with a configuration, and Terraform's commands in it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON = Path(sys.prefix) / "infra/bin/python"
MAIN = Path(__file__).with_name("terraform_main.py")
SAME, DIFFERENT = 0, 2  # exit codes of plan
LIMIT = 120.0  # seconds of one command
HEAD = """
terraform {
  required_providers {
    muster = { source = "muster.local/muster/muster" }
  }
}
"""


@dataclass
class Terraform:
    folder: Path
    environment: dict[str, str]

    def write(self, text: str, *, head: str = HEAD) -> None:
        (self.folder / "main.tf").write_text(head + text)

    def run(self, *words: str, code: int = 0, **more: str) -> str:
        """What it printed; anything but the expected exit code fails."""
        ended = subprocess.run(
            [PYTHON, "-P", MAIN, words[0], "-no-color", *words[1:]], cwd=self.folder, timeout=LIMIT,
            env=self.environment | more, capture_output=True, text=True,
        )  # fmt: skip
        printed = ended.stdout + ended.stderr
        assert ended.returncode == code, (
            f"terraform {' '.join(words)}: {ended.returncode}\n{printed}"
        )
        return printed

    def apply(self, **more: str) -> str:
        return self.run("apply", "-auto-approve", "-input=false", **more)

    def destroy(self, **more: str) -> str:
        return self.run("destroy", "-auto-approve", "-input=false", **more)

    def plan(self, **more: str) -> dict[str, list[str]]:
        """By address what would be done; nothing when all is as configured."""
        self.run("plan", "-out=plan", "-input=false", **more)
        shown = json.loads(self.run("show", "-json", "plan"))
        return {
            each["address"]: each["change"]["actions"]
            for each in shown["resource_changes"]
            if each["change"]["actions"] not in (["no-op"], ["read"])
        }

    def state(self) -> dict[str, dict[str, Any]]:
        """Attributes by address."""
        shown = json.loads(self.run("show", "-json"))
        module = shown.get("values", {}).get("root_module", {})
        return {each["address"]: each["values"] for each in module.get("resources", [])}


def installed(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment in which `terraform init` finds the provider where it was installed."""
    plugins = folder / "plugins"
    provider = [PYTHON, "-P", "-m", "muster_terraform.main", "--install", plugins]
    subprocess.run(provider, check=True, capture_output=True)
    settings = folder / "terraform.rc"
    settings.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{plugins}"\n  }}\n}}\n'
    )
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "TF_"))
    }
    return kept | environment | {
        "HOME": str(folder), "TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
    }  # fmt: skip
