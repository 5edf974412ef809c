"""How a PostgreSQL program is run by us: as ourselves, or as root by way of `nobody`.

PostgreSQL refuses to run as root. As root we become `nobody` by util-linux's setpriv, with no
group, no capability and no way to gain one. Where a folder on the way can't be entered by
`nobody` (root's home, a 0700 clone) the program keeps one capability that passes through:
dac_read_search, or dac_override in containers that don't have the first one. It also needs the
securebit no_setuid_fixup, since access(2) otherwise ignores capabilities of a non-root user and
PostgreSQL looks for its own binary with access(2).
"""

import asyncio
import contextlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from muster.core.errors import InvalidRequest

ACCOUNT = "nobody"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}  # nothing of ours, no PG* variable
BITS = {"dac_override": 1, "dac_read_search": 2, "setpcap": 8}  # <linux/capability.h>
PASSING = ("dac_read_search", "dac_override")  # the weakest that helps comes first


@dataclass(frozen=True)
class Account:
    """Who owns the files of a cluster and runs its server."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> "Account":
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        entry = pwd.getpwnam(ACCOUNT)
        return cls(entry.pw_uid, entry.pw_gid)

    @property
    def is_us(self) -> bool:
        return self.uid == os.geteuid()

    def can_enter(self, path: Path) -> bool:
        """Each folder on the way to `path`, and `path` itself if it is one, has its x bit for us."""
        folders = [*path.parents, path] if path.is_dir() else path.parents
        return all(self._may(folder.stat(), stat.S_IXOTH) for folder in folders)

    def can_run(self, program: Path) -> bool:
        return self._may(program.stat(), stat.S_IXOTH | stat.S_IROTH)

    def _may(self, status: os.stat_result, bits: int) -> bool:
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0
        return status.st_mode & (bits << shift) == bits << shift


async def run_as(
    account: Account,
    argv: Sequence[str],
    paths: Iterable[Path],
    *,
    log: IO[bytes] | None = None,
    given: str = "",
) -> tuple[int, str]:
    """Exit code and output (or the output goes to `log`); `given` is what it reads as /dev/stdin."""
    front = prefix(account, paths)
    reader, writer = os.pipe()
    try:
        if not account.is_us:  # a pipe belongs to its creator, and /dev/stdin opens it again
            os.fchown(reader, account.uid, account.gid)
        os.write(writer, given.encode())
        os.close(writer)
        process = await asyncio.create_subprocess_exec(
            *front,
            *argv,
            stdin=reader,
            stdout=log or asyncio.subprocess.PIPE,
            stderr=log or asyncio.subprocess.STDOUT,
            env=ENVIRONMENT,
            cwd="/",
        )
    finally:
        os.close(reader)
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return process.returncode or 0, (output or b"").decode(errors="replace")


def prefix(account: Account, paths: Iterable[Path]) -> list[str]:
    """What stands before a program's argv so that `account` runs it and reaches every path."""
    if account.is_us:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise _unreachable("util-linux's setpriv is not installed")
    identity = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    blocked = [path for path in paths if not account.can_enter(path.resolve())]
    passing = f",+{_capability(blocked)}" if blocked else ""
    # Ambient capabilities need the inheritable ones; the bounding set says that it ends there.
    sets = [f"--{name}=-all{passing}" for name in ("inh-caps", "ambient-caps")]
    if "setpcap" in held():
        sets.append(f"--bounding-set=-all{passing}")
    bits = ["--securebits=+no_setuid_fixup"] if blocked else []
    return [setpriv, *identity, "--no-new-privs", *sets, *bits]


def held() -> frozenset[str]:
    """Which of the capabilities that matter here this process may hand on."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Cap"))
    mask = int(masks["CapPrm"], 16) & int(masks["CapBnd"], 16)
    return frozenset(name for name, bit in BITS.items() if mask >> bit & 1)


def make_runnable(folder: Path) -> None:
    """Undoes a strict umask at installation: programs that only their owner may run."""
    for program in folder.iterdir():
        mode = program.stat().st_mode
        if mode & stat.S_IXUSR:
            program.chmod(mode | 0o555)


def _capability(blocked: list[Path]) -> str:
    ours = held()
    for name in PASSING:
        if name in ours and "setpcap" in ours:
            return name
    raise _unreachable(f"{ACCOUNT} can't enter {blocked[0]} and we hold no capability to help it")


def _unreachable(why: str) -> InvalidRequest:
    return InvalidRequest(
        f"PostgreSQL can't run as root, and {why}. Use a --data-dir and an installation that "
        "every user can enter, such as /var/lib/muster and a venv below /opt, "
        "or start Muster as a normal user.",
        code="DataDirectoryNotReachable",
    )
