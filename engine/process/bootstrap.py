"""The settings of an engine or a host at its start: the launcher's start file, checked and typed.

`spec.settings` of the workload holds a `WorkloadSettings`; `secrets` holds engine_password, private_key and, if they
are needed, client_key and vault_token. Nothing else is read: no environment, no metadata database.
"""

import math
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec

from engine.process.egress import Egress
from fsm.launch.client import read_start
from fsm.launch.protocol import Start
from muster.core.address_source import Fixed
from muster.core.connect import Connector
from muster.core.egress import Addresses
from muster.core.endpoint import Endpoint
from muster.core.enumeration import PROVIDER_DATABASES
from muster.core.settings import Secret, Settings, SettingsError

PASSWORD, PRIVATE_KEY = "engine_password", "private_key"
CLIENT_KEY, VAULT_TOKEN = "client_key", "vault_token"


class WorkloadSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Unknown fields are ignored, so that a newer control plane may send more. Durations are seconds."""

    endpoint: Endpoint  # of the control database's server, without its client key
    database: str
    user: str
    capacity: int  # targets that the account works on at once
    hosts: int = 1  # processes that share the capacity
    host_patience: float = 600.0  # how long the control database may be unavailable
    part_patience: float = 30.0  # a service without progress for this time is restarted
    target_allow: tuple[str, ...] = ()
    target_deny: tuple[str, ...] = ()
    target_ports: tuple[str, ...] = ("1024-65535",)
    target_ca: str | None = None  # PEM; verifies servers that name no CA of their own
    provider_databases: tuple[str, ...] = PROVIDER_DATABASES  # that listing a server leaves out
    addresses: Addresses = Addresses()  # until the Workload API names newer ones
    credential_references: tuple[str, ...] = ()  # prefixes of references that credentials may have
    vault_address: str | None = None
    vault_namespace: str | None = None
    output_spool_dir: str | None = None  # None: in the folder of the launcher
    output_spool_size: int = (
        1024**3
    )  # bytes of the account's rows on one machine that wait for their output
    batch_reads: bool = True  # hosts pipeline read-only tasks: see attempt/read_batch.py
    connect_limit: float = 10.0
    log_level: str = "info"
    failpoints: str | None = None  # the file that arms them, in tests


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    start: Start
    workload_settings: WorkloadSettings
    epoch: int
    account_uid: UUID
    password: Secret
    private_key: Secret  # opens secrets that were sealed for the account
    egress: Egress
    folder: Path = Path(tempfile.gettempdir())  # of the launcher

    @classmethod
    def of(cls, start: Start, folder: Path | None = None) -> "Bootstrap":
        """SettingsError lists everything that is missing, and never contains a value."""
        try:
            settings = msgspec.convert(start.spec.settings, WorkloadSettings)
        except msgspec.ValidationError as error:
            raise SettingsError(f"spec.settings: {error}") from None
        problems = [f"secrets.{name} is missing" for name in _missing(start)]
        if start.epoch is None:
            problems.append("epoch is missing")
        if start.account_uid is None:
            problems.append("accountUid is missing")
        if min(settings.capacity, settings.hosts) < 1:
            problems.append("capacity and hosts are at least 1")
        if problems or start.epoch is None or start.account_uid is None:
            raise SettingsError("; ".join(problems))
        key = start.secrets.get(CLIENT_KEY)
        if key is not None:
            endpoint = msgspec.structs.replace(settings.endpoint, client_key=key)
            settings = msgspec.structs.replace(settings, endpoint=endpoint)
        return cls(
            start=start,
            workload_settings=settings,
            epoch=start.epoch,
            account_uid=start.account_uid,
            password=Secret(start.secrets[PASSWORD]),
            private_key=Secret(start.secrets[PRIVATE_KEY]),
            egress=Egress(settings.addresses),
            folder=folder or cls.folder,
        )

    @property
    def slots(self) -> int:
        """One host's share of the capacity."""
        return math.ceil(self.workload_settings.capacity / self.workload_settings.hosts)

    @property
    def spool_folder(self) -> Path:
        """For the rows of outputs; shared by the account's hosts on this machine."""
        folder = self.workload_settings.output_spool_dir
        parent = Path(folder) if folder else self.folder / "spool"
        return parent / str(self.account_uid)

    @property
    def heartbeat(self) -> timedelta:
        return timedelta(seconds=self.start.heartbeat)

    @property
    def host_patience(self) -> timedelta:
        return timedelta(seconds=self.workload_settings.host_patience)

    @property
    def part_patience(self) -> timedelta:
        return timedelta(seconds=self.workload_settings.part_patience)

    def settings(self) -> Settings:
        """Settings for the connector; without the address of a metadata database."""
        return Settings(
            database_url=Secret(""),
            target_allow=self.workload_settings.target_allow,
            target_deny=self.workload_settings.target_deny,
            target_ports=self.workload_settings.target_ports,
            connect_limit=timedelta(seconds=self.workload_settings.connect_limit),
            log_level=self.workload_settings.log_level,
        )

    def connector(self) -> Connector:
        """For the control database only; its address is allowed, also that of an embedded server."""
        endpoint = self.workload_settings.endpoint.direct()
        embedded = frozenset((name, endpoint.port) for name in endpoint.names)
        own = self.workload_settings.addresses.own
        source = Fixed(Addresses(embedded=embedded, own=own))
        return Connector(self.settings(), source, authority=self.workload_settings.target_ca)

    def target_connector(self) -> Connector:
        """For targets; the control plane decides which addresses are allowed, not the directory."""
        return Connector(self.settings(), self.egress, authority=self.workload_settings.target_ca)


def read(path: Path) -> Start:
    try:
        return read_start(path)
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(f"the start file can't be read: {error}") from None


def _missing(start: Start) -> list[str]:
    return [name for name in (PASSWORD, PRIVATE_KEY) if not start.secrets.get(name)]
