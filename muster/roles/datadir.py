"""The data directory of `muster up`: its lock, its secrets, and the settings that come of them.

DIR/lock            held while a supervisor lives
DIR/metadata        the cluster of the metadata database
DIR/clusters/*      the clusters of embedded servers
DIR/secrets         token, keys, database password: made once, handed to children as files
DIR/tls             local CA and certificate of `--tls`
DIR/run, DIR/logs   records and output of the roles
"""

import base64
import contextlib
import errno
import fcntl
import json
import os
import random
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from muster.core.cluster import PORTS, Cluster
from muster.core.egress import Rules
from muster.core.errors import InvalidRequest, Unavailable
from muster.core.files import make_folder, write_private
from muster.core.settings import PREFIX, Secret, Settings, SettingsError, surroundings
from muster.roles import metadata
from muster.roles.authority import Authority
from muster.roles.supervisor import recorded

SETTINGS = "settings.json"
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


class DataDir:
    def __init__(
        self, root: Path, listen: str, *, tls: bool, allow_target: tuple[str, ...] = ()
    ) -> None:
        self.root = root.absolute()
        self.wanted = listen
        self.allow_target = allow_target
        self.authority = Authority(self.root / "tls") if tls else None
        self.cluster: Cluster | None = None  # unset when the operator names a database
        self.migrator: metadata.Migrator | None = None  # of that cluster
        self.given: dict[str, str] = {}  # the environment that made the settings

    def make(self) -> None:
        """As root others may pass through it, since PostgreSQL runs as another user."""
        make_folder(self.root, 0o711 if os.geteuid() == 0 else 0o700)

    async def settings(self) -> Settings:
        """The operator's MUSTER_* values, completed by what a single machine makes for itself."""
        outside = surroundings()
        environment = {
            key: value for key, value in outside.items() if key.startswith(PREFIX) and value
        }
        environment |= {PREFIX + "DATA_DIR": str(self.root), PREFIX + "LISTEN": self._listen()}
        environment |= self._allowed(environment)
        environment.setdefault(PREFIX + "INTERNAL_LISTEN", self._internal())
        environment.setdefault(PREFIX + "LAUNCHER_DRAIN", "true")  # stopping here stops everything
        folder = make_folder(self.root / "secrets")
        make_folder(self.root / "clusters", 0o711)
        for name, file, make in (
            ("LOCAL_TOKEN", "token", lambda: secrets.token_urlsafe(32)),
            ("KEYS", "keys", self._new_key),
        ):
            if not _is_set(environment, name):
                environment[f"{PREFIX}{name}_FILE"] = str(self._kept(folder / file, make))
        if self.authority:
            self.renew()
            environment[PREFIX + "TLS_CERT"] = str(self.authority.certificate)
            environment[PREFIX + "TLS_KEY"] = str(self.authority.key)
        if not _is_set(environment, "DATABASE_URL"):
            if _is_set(environment, "DATABASE_OWNER_URL"):
                raise SettingsError("MUSTER_DATABASE_OWNER_URL needs MUSTER_DATABASE_URL")
            _check(environment | {PREFIX + "DATABASE_URL": "made below"})
            path = self._kept(folder / "database-password", lambda: secrets.token_urlsafe(32))
            self.cluster = metadata.embedded(self.root / "metadata")
            password = Secret(path.read_text(encoding="utf-8"))
            url, self.migrator = await metadata.prepare_embedded(self.cluster, password)
            write_private(folder / "database-url", url.reveal())
            environment[PREFIX + "DATABASE_URL_FILE"] = str(folder / "database-url")
        self.given = environment
        return _check(environment)

    def environment(self, settings: Settings) -> dict[str, str]:
        """Values for the children; each secret as a file, never as a value."""
        environ = settings.environ()
        environ.pop(f"{PREFIX}DATABASE_OWNER_URL", None)  # for migrations alone
        folder = make_folder(self.root / "secrets" / "children")
        for field in fields(settings):
            value = getattr(settings, field.name)
            name = PREFIX + field.name.upper()
            if isinstance(value, Secret) and name in environ:
                del environ[name]
                path = self.given.get(f"{name}_FILE", str(folder / field.name))
                if name in self.given:
                    write_private(folder / field.name, value.reveal())
                environ[f"{name}_FILE"] = path
        outside = surroundings()
        return environ | {name: outside[name] for name in INHERITED if name in outside}

    def keep_settings(self, environment: dict[str, str]) -> None:
        """What `muster config print` shows beside a `muster up`."""
        kept = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
        write_private(make_folder(self.root / "run") / SETTINGS, json.dumps(kept))

    def forget_settings(self) -> None:
        (self.root / "run" / SETTINGS).unlink(missing_ok=True)

    def renew(self) -> None:
        """The certificate of `--tls` is there and fresh."""
        if self.authority:
            self.authority.ensure(split(self.wanted)[0])

    def cluster_folders(self) -> list[Path]:
        return [self.root / "metadata", *sorted((self.root / "clusters").glob("[!.]*"))]

    def log_files(self) -> list[Path]:
        """Of roles and clusters; those of workloads are the launcher's."""
        clusters = (folder / "log" for folder in self.cluster_folders())
        return [*(self.root / "logs").glob("*.log"), *clusters]

    def _kept(self, path: Path, make: Callable[[], str]) -> Path:
        if not path.exists():
            write_private(path, make())
        return path

    def _new_key(self) -> str:
        """An id of its own, so that a key that was made again is never taken for the lost one."""
        if (self.root / "metadata" / "data").exists():
            raise InvalidRequest(
                f"{self.root / 'secrets' / 'keys'} is missing, but the metadata database in this data "
                "directory has secrets that were sealed with its keys. Restore that file from a backup, "
                "or start with an empty data directory.",
                code="EnvelopeKeyMissing",
            )
        return f"k{secrets.token_hex(4)}:{base64.b64encode(os.urandom(32)).decode()}"

    def _allowed(self, environment: dict[str, str]) -> dict[str, str]:
        """The operator's list and the flags; localhost is the two addresses that it means."""
        if not self.allow_target:
            return {}
        name = PREFIX + "TARGET_ALLOW"
        words = [environment[name]] if name in environment else []
        for each in self.allow_target:
            host, colon, port = each.partition(":")
            loopback = ("127.0.0.1", "[::1]") if host.lower() == "localhost" else ()
            words += [f"{address}{colon}{port}" for address in loopback] or [each]
        return {name: ",".join(words)}

    def _listen(self) -> str:
        """Port 0 becomes a number here, so that an API that is started again keeps its address."""
        host, port = split(self.wanted)
        running = recorded(self.root / "run" / "api.json").get("listen")
        if running and split(running) in {(host, port), (host, port or split(running)[1])}:
            return str(running)  # held by the API that is about to be adopted, or replaced
        if port == 0:
            port = _free_port(host)
        if error := _bind_error(host, port):
            raise InvalidRequest(
                f"The address {_join(host, port)} can't be used: {error}. "
                "Choose another one with --listen HOST:PORT (port 0 takes any free one)."
            )
        return _join(host, port)

    def _internal(self) -> str:
        """The Workload API's address: kept, since engines that are adopted know no other."""
        path = make_folder(self.root / "run") / "internal"
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        if kept and (recorded(path.with_name("fsm.json")) or not _bind_error(*split(kept))):
            return kept
        chosen = _join("127.0.0.1", _free_port("127.0.0.1"))
        write_private(path, chosen)
        return chosen


def kept_settings(root: Path) -> dict[str, str] | None:
    """The environment of the roles of the `muster up` in this directory; None where none runs."""
    try:
        kept: dict[str, str] = json.loads((root / "run" / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept


def _free_port(host: str) -> int:
    sample = random.sample(PORTS, 100)
    return next((port for port in sample if not _bind_error(host, port)), sample[0])


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """One supervisor per data directory; the lock goes with its holder."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise Unavailable(
                f"Another `muster up` (pid {pid}) already runs on {path.parent}. "
                "Stop it, or choose another --data-dir."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _check(environ: dict[str, str]) -> Settings:
    """Everything that a role would refuse at its start is refused here."""
    settings = Settings.load(environ)
    Rules.of(settings)
    return settings


def _is_set(environ: dict[str, str], name: str) -> bool:
    return any(environ.get(PREFIX + name + suffix) for suffix in ("", "_FILE"))


def split(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise InvalidRequest(f"--listen: '{listen}' is not HOST:PORT.")
    return host.strip("[]"), int(port)


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind_error(host: str, port: int) -> str | None:
    """Why a server could not listen there; the socket is closed again."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "it is in use"
            return error.strerror or str(error)
        return None
