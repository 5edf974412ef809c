"""The core's copy of the instance row and the hosts; loaded with each start of the core."""

from dataclasses import dataclass, field
from uuid import UUID

from engine.db.membership import HostRow, InstanceState, MembershipSnapshot
from engine.process.exit_codes import Disagreement
from engine.scheduling.run_state import RunState


@dataclass
class ClusterState:
    beat: InstanceState
    hosts: dict[UUID, HostRow] = field(default_factory=dict)
    reads: int = 0  # how often the hosts were read
    silent: set[UUID] = field(default_factory=set)  # hosts that died or have no heartbeat
    run_state: RunState | None = None  # of the controller
    settled: int = 0  # tasks of lost hosts resolved since they were last recorded

    @classmethod
    def of(cls, snapshot: MembershipSnapshot) -> "ClusterState":
        return cls(snapshot.beat, dict(snapshot.hosts), 1)

    @property
    def open(self) -> bool:
        """New work may begin."""
        return not (self.beat.paused or self.beat.draining)

    def gets_tasks(self, host: UUID) -> bool:
        return host in self.hosts and self.hosts[host].state == "live" and host not in self.silent

    def update(self, beat: InstanceState) -> None:
        """Applies the instance row. A Disagreement when no ordinary change leads to it."""
        if beat.schema_version != self.beat.schema_version:
            raise Disagreement(
                f"the schema was {self.beat.schema_version} and is {beat.schema_version}"
            )
        if beat.directory_revision < self.beat.directory_revision:
            raise Disagreement(
                f"the directory was at {self.beat.directory_revision}"
                f" and is at {beat.directory_revision}"
            )
        self.beat = beat

    def set_hosts(self, hosts: dict[UUID, HostRow]) -> None:
        self.hosts = hosts
        self.reads += 1

    def differences(self, snapshot: MembershipSnapshot) -> frozenset[str]:
        """Sentences about what differs; the same sentence for the same difference."""
        differences = set()
        for name in ("paused", "draining"):
            in_memory, in_database = getattr(self.beat, name), getattr(snapshot.beat, name)
            if in_memory != in_database:
                differences.add(f"{name} is {in_database} in the database and {in_memory} here")
        for host in self.hosts.keys() - snapshot.hosts.keys():
            differences.add(f"host {host} has no row")
        for host in snapshot.hosts.keys() - self.hosts.keys():
            differences.add(f"host {host} has a row and is missing here")
        for host in self.hosts.keys() & snapshot.hosts.keys():
            if self.hosts[host].state != snapshot.hosts[host].state:
                differences.add(f"host {host} is {snapshot.hosts[host].state}")
        return frozenset(differences)
