"""What an operator can set: one frozen struct, read from the environment once per process."""

import os
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from muster.core.enumeration import PROVIDER_DATABASES

PREFIX = "MUSTER_"
# Of tests and benchmarks, and of the command line.
NOT_OURS = tuple(PREFIX + name for name in ("TEST_", "BENCH_"))
COMMAND_LINE = frozenset(PREFIX + name for name in ("ACCOUNT", "TOKEN", "TOKEN_FILE", "URL"))
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class SettingsError(Exception):
    """Every wrong or missing value in one message."""


class Secret:
    """A value that never prints itself."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


@dataclass(frozen=True, kw_only=True)
class Settings:
    # Where things are
    database_url: Secret  # the metadata database
    database_owner_url: Secret | None = None  # the role that migrates; the one above only runs
    redis_url: Secret | None = None  # wake-ups and rate limits over several machines
    data_dir: Path | None = None  # embedded mode: clusters, keys, logs; unset = not embedded
    listen: str = "127.0.0.1:8080"  # address of the public API
    public_url: str | None = None  # what clients call us; unset = taken from the request
    allowed_hosts: tuple[str, ...] = ()  # accepted Host headers; empty = this machine's
    forwarded_from: tuple[str, ...] = ()  # peers (CIDR) whose X-Forwarded-* headers are trusted
    request_limit: timedelta = seconds(30)  # a request that takes longer is stopped: 504
    connections_per_address: int = 256  # open at once; 0 = any number; not for forwarded_from
    tls_cert: Path | None = None  # PEM chain of the listener; reloaded when it changes
    tls_key: Path | None = None  # its private key
    locations: tuple[str, ...] = ()  # allowed locations; empty = any
    tenant_id: str = "00000000-0000-0000-0000-000000000001"  # of the local and service tokens

    # Authentication and throttling
    local_token: Secret | None = None  # embedded mode: Owner at tenant scope
    bootstrap_owner: str | None = None  # object id of the first Owner at tenant scope
    oidc_issuer: str | None = None  # exact `iss`
    oidc_jwks_url: str | None = None  # unset = found through the issuer's discovery document
    oidc_audiences: tuple[str, ...] = ("https://management.azure.com/",)  # accepted `aud`
    oidc_tenants: tuple[str, ...] = ()  # accepted `tid`; empty = only tenant_id
    oidc_group_claim: str = "groups"  # claim that lists a caller's groups
    oidc_refresh: timedelta = seconds(300)  # at most one JWKS fetch per interval
    role_cache: timedelta = seconds(5)  # a removed role is refused after so long at the latest
    audit_kept: timedelta = seconds(31536000)  # audit events are kept so long; 0s = for ever
    throttle: str = "auto"  # auto: on with OIDC, off without; on; off
    throttle_reads: float = 250  # per principal and subscription; refills a tenth per second
    throttle_writes: float = 200  # refills a twentieth per second
    throttle_deletes: float = 200  # refills a twentieth per second

    # Secrets
    keys: Secret | None = None  # `id:base64,…`: envelope keys of 32 bytes, the first one seals
    credential_references: tuple[str, ...] = ()  # prefixes such as env:FLEET_; empty = none
    vault_address: str | None = None  # URL of the HashiCorp Vault that vault:mount/path#key is in
    vault_token: Secret | None = None  # may read there; engines and hosts get it when they start
    vault_namespace: str | None = None  # of the vault; unset = its root

    # Targets
    target_allow: tuple[str, ...] = ()  # CIDR, host pattern, each with :port or not; opens loopback
    target_deny: tuple[str, ...] = ()  # wins over allow, also over embedded servers
    target_ports: tuple[str, ...] = ("1024-65535",)  # numbers and ranges
    target_ca_file: Path | None = None  # PEM; the CA of all servers that name none themselves
    provider_databases: tuple[str, ...] = PROVIDER_DATABASES  # skipped by listing; the whole list
    connect_limit: timedelta = seconds(10)  # one attempt to connect to a server

    # Timing
    lease: timedelta = seconds(30)  # a runner without a heartbeat for so long is dead
    step_limit: timedelta = seconds(20)  # one effect takes at most so long; below `lease`
    poll_busy: timedelta = seconds(1)  # poll for due machines while some are due
    poll_idle: timedelta = seconds(10)  # the same while nothing is due
    sweep: timedelta = seconds(5)  # dead clusters restarted, expired rows removed
    retry_base: timedelta = seconds(1)  # first pause after a failed step
    retry_ceiling: timedelta = seconds(600)  # the pause doubles up to this
    deadline_scale: float = 1.0  # multiplies every deadline of the lifecycles
    runner_parallelism: int = 8  # machines that one process works on at once
    pool_size: int = 10  # connections of one process to the metadata database
    log_level: str = "info"  # debug, info, warning, error
    failpoints: str | None = None  # only for tests: file that arms named failpoints

    # Launching
    internal_listen: str = "127.0.0.1:8081"  # address of the Workload API
    internal_url: str | None = None  # how engines and hosts reach it; unset = internal_listen
    launcher_name: str | None = None  # the same over restarts; unset = the name of the machine
    launcher_dir: Path | None = None  # start files and logs of its processes; unset = data_dir
    launcher_group: str = "default"  # a launcher takes only the workloads of its group
    launcher_parallelism: int = 10  # concurrent starts, for each priority
    launcher_surge: int = 10  # percent of them still open when a restarted launcher takes new ones
    launcher_memory: int = 134217728  # bytes that a start is expected to take
    launcher_memory_reserve: int = 268435456  # bytes that stay free
    launcher_max_load: float = 8.0  # no start while the load per core is above; 0 = no limit
    launcher_drain: bool = False  # a stopping launcher ends the processes that it started
    max_running_engine: int = 0  # over all launchers; 0 = no limit
    max_running_host: int = 0  # the same for hosts
    max_running_command: int = 0  # the same for command steps
    workload_heartbeat: timedelta = seconds(5)  # how often a workload sends a heartbeat
    workload_silent: timedelta = seconds(30)  # a workload without a heartbeat for so long is dead
    workload_first_beat: timedelta = seconds(60)  # from its start to its first heartbeat
    workload_claim_limit: timedelta = seconds(1800)  # unclaimed for so long without any launcher
    workload_start_limit: timedelta = seconds(120)  # from its claim to its start
    workload_redelivery: timedelta = seconds(300)  # polled and not claimed: offered again then
    workload_stop_grace: timedelta = seconds(5)  # from SIGTERM to SIGKILL
    workload_mutex_wait: timedelta = seconds(45)  # waits so long for its predecessor to end
    workload_kept: timedelta = seconds(604800)  # ended workloads and their logs
    command_limit: timedelta = seconds(14400)  # a command step that runs for longer has failed
    host_patience: timedelta = seconds(600)  # a host that can't renew for so long ends itself
    monitor_sweep: timedelta = seconds(5)  # how often overdue workloads are searched for

    # Node agent
    node_agent_listen: str = "127.0.0.1:0"  # address of its listener; port 0 = any free one
    node_agent_url: str | None = None  # how others reach it; unset = taken from the listener
    node_agent_name: str | None = None  # the same over restarts; unset = the name of the machine
    node_agent_servers: tuple[str, ...] = ()  # ids of the servers that it serves; empty = all
    node_agent_tls_cert: Path | None = None  # PEM chain for both ends of a connection
    node_agent_tls_key: Path | None = None  # its private key
    node_agent_tls_ca: Path | None = None  # PEM; only certificates that it signed are accepted
    node_agent_heartbeat: timedelta = seconds(5)  # how often it sends a heartbeat
    node_agent_silent: timedelta = seconds(30)  # without a heartbeat for so long: no command
    node_agent_pool: int = 4  # sessions in one control database at once
    node_agent_idle: timedelta = seconds(30)  # an unused session is closed after so long

    # Engine
    account_check: timedelta = seconds(10)  # how often a ready account is checked
    engine_hosts: int = 1  # host processes of an account; they share its capacity
    engine_part_patience: timedelta = seconds(30)  # a core service silent for so long is restarted
    output_spool_dir: Path | None = None  # rows that wait for their output; unset = launcher_dir
    output_spool_size: int = 1073741824  # bytes of them, for each account and machine
    batch_reads: bool = True  # hosts send tasks that only read to their database in batches

    def __post_init__(self) -> None:
        ours = (self.node_agent_tls_cert, self.node_agent_tls_key, self.node_agent_tls_ca)
        vault = self.vault_address or "http://"
        rules = (
            (self.step_limit < self.lease, "MUSTER_STEP_LIMIT must be below MUSTER_LEASE"),
            (
                (self.tls_cert is None) == (self.tls_key is None),
                "MUSTER_TLS_CERT and MUSTER_TLS_KEY go together",
            ),
            (
                len({path is None for path in ours}) == 1,
                "MUSTER_NODE_AGENT_TLS_CERT, _KEY and _CA go together",
            ),
            (
                (self.vault_address is None) == (self.vault_token is None),
                "MUSTER_VAULT_ADDRESS and MUSTER_VAULT_TOKEN go together",
            ),
            (
                vault.startswith(("http://", "https://")),
                "MUSTER_VAULT_ADDRESS must begin with http:// or https://",
            ),
            (
                self.throttle in {"auto", "on", "off"},
                "MUSTER_THROTTLE must be auto, on or off",
            ),
            (
                not timedelta(0) < self.audit_kept < timedelta(days=1),
                "MUSTER_AUDIT_KEPT must be at least 24h, or 0s to keep audit events for ever",
            ),
            (
                self.connections_per_address >= 0,
                "MUSTER_CONNECTIONS_PER_ADDRESS must be 0 (no limit) or more",
            ),
            (
                self.output_spool_size >= 1048576,
                "MUSTER_OUTPUT_SPOOL_SIZE must be at least 1048576 bytes",
            ),
            (self.request_limit > timedelta(0), "MUSTER_REQUEST_LIMIT must be above 0s"),
            (
                self.workload_heartbeat * 2 <= self.workload_silent,
                "MUSTER_WORKLOAD_SILENT must be at least twice MUSTER_WORKLOAD_HEARTBEAT",
            ),
            (
                self.monitor_sweep * 2 <= self.workload_silent,
                "MUSTER_WORKLOAD_SILENT must be at least twice MUSTER_MONITOR_SWEEP",
            ),
        )
        wrong = [message for holds, message in rules if not holds]
        if wrong:
            raise SettingsError("; ".join(wrong))

    @property
    def embedded(self) -> bool:
        return self.data_dir is not None

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Reads all, reports everything that is wrong at once."""
        environ = os.environ if environ is None else environ
        hints = typing.get_type_hints(cls)
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for field in fields(cls):
            name = PREFIX + field.name.upper()
            try:
                raw = _raw(environ, name, secret=_holds(hints[field.name], Secret))
                if raw is not None:
                    values[field.name] = _convert(raw, hints[field.name])
                elif field.default is MISSING:
                    wrong.append(f"{name} is required")
            except (ValueError, OSError) as error:
                wrong.append(f"{name}: {error}")
        names = {PREFIX + f.name.upper() for f in fields(cls)}
        names |= {name + "_FILE" for name in names}
        wrong += [
            f"{name} is not a setting" for name in environ if _ours(name) and name not in names
        ]
        if wrong:
            raise SettingsError("; ".join(sorted(wrong)))
        return cls(**values)

    def environ(self) -> dict[str, str]:
        """The environment that makes a child load the same values; secrets as they are."""
        out: dict[str, str] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                out[PREFIX + field.name.upper()] = _text(value)
        return out


def surroundings() -> dict[str, str]:
    """The environment as it is, for a supervisor that hands a part of it on."""
    return dict(os.environ)


def shown(value: object) -> str:
    """For people: a secret is never spelled out."""
    if value is None:
        return ""
    return str(value) if isinstance(value, Secret) else _text(value)


def _ours(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith(NOT_OURS) and name not in COMMAND_LINE


def _holds(hint: object, kind: type) -> bool:
    return hint is kind or kind in typing.get_args(hint)


def _raw(environ: Mapping[str, str], name: str, *, secret: bool) -> str | None:
    plain = environ.get(name)
    path = environ.get(name + "_FILE")
    if plain is not None and path is not None:
        raise ValueError(f"set either {name} or {name}_FILE")
    if path is not None:
        if not secret:
            raise ValueError("only secrets have a _FILE form")
        return Path(path).read_text(encoding="utf-8").strip()
    return plain or None


def _convert(raw: str, hint: Any) -> Any:
    if typing.get_origin(hint) in {types.UnionType, typing.Union}:
        hint = next(a for a in typing.get_args(hint) if a is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    if hint is timedelta:
        return _duration(raw)
    if hint is bool:
        return {"true": True, "1": True, "false": False, "0": False}[raw.lower()]
    return hint(raw)


def _duration(raw: str) -> timedelta:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", raw)
    if not match:
        raise ValueError(f"'{raw}' is not a duration such as 500ms, 30s, 10m, 24h")
    return timedelta(seconds=float(match[1]) * UNITS[match[2]])


def _text(value: object) -> str:
    match value:
        case Secret():
            return value.reveal()
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)
