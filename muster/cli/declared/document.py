"""A document of a file: what one resource shall be, and where that is said."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.cli.client import Refused
from muster.cli.declared.kinds import Kind
from muster.core.settings import surroundings


class Wrong(Exception):  # noqa: N818 - lines for the user
    """Everything that is wrong with the files, a line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class SecretSource:
    """Where a secret is: it is read when it is sent, and never shown."""

    place: str
    field: str  # passwordFile, secretEnv, …
    text: str  # its value
    file: Path | None = None

    def read(self) -> str:
        if self.file is None:
            secret = surroundings().get(self.text, "")
            if not secret:
                raise Refused(f"{self.place}: the environment has no variable {self.text}")
            return secret
        try:
            secret = self.file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            raise Refused(f"{self.place}: {self.file} can't be read: {error}") from error
        if not secret:
            raise Refused(f"{self.place}: {self.file} is empty")
        return secret


@dataclass(frozen=True)
class Step:
    name: str
    properties: dict[str, Any]


@dataclass(frozen=True)
class Document:
    kind: Kind
    name: str
    properties: dict[str, Any]  # those that are stated
    steps: tuple[Step, ...] | None = None  # None: the file says nothing of them
    secret: SecretSource | None = None
    file: str = ""
    lines: dict[str, int] = field(default_factory=dict)  # path of a field → line

    @property
    def title(self) -> str:
        return f"{self.kind.noun} {self.name}"

    @property
    def key(self) -> tuple[str, str]:
        return self.kind.name, self.name.lower()

    def place(self, path: str = "") -> str:
        """File and line of a field, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self.file}:{self.lines.get(path, 1)}"
