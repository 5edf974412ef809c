"""What the core holds in memory: a copy of the database, made anew with each start of the core."""

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
    silent: set[UUID] = field(default_factory=set)  # hosts that are not heard of any more
    run_state: RunState | None = None  # of the controller
    settled: int = 0  # tasks of lost hosts, since that was last recorded

    @classmethod
    def of(cls, look: MembershipSnapshot) -> "ClusterState":
        return cls(look.beat, dict(look.hosts), 1)

    @property
    def open(self) -> bool:
        """New work may begin."""
        return not (self.beat.paused or self.beat.draining)

    def gets_tasks(self, host: UUID) -> bool:
        return host in self.hosts and self.hosts[host].state == "live" and host not in self.silent

    def learn(self, beat: InstanceState) -> None:
        """Follows the database, unless it tells something that no ordinary change leads to."""
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

    def see(self, hosts: dict[UUID, HostRow]) -> None:
        self.hosts = hosts
        self.reads += 1

    def differs(self, look: MembershipSnapshot) -> frozenset[str]:
        """What memory has wrong, each in a sentence; the same sentence for the same mistake."""
        found = set()
        for name in ("paused", "draining"):
            here, there = getattr(self.beat, name), getattr(look.beat, name)
            if here != there:
                found.add(f"{name} is {there} and held to be {here}")
        for host in self.hosts.keys() - look.hosts.keys():
            found.add(f"host {host} is known and has no row")
        for host in look.hosts.keys() - self.hosts.keys():
            found.add(f"host {host} has a row and is not known")
        for host in self.hosts.keys() & look.hosts.keys():
            if self.hosts[host].state != look.hosts[host].state:
                found.add(f"host {host} is {look.hosts[host].state}")
        return frozenset(found)
