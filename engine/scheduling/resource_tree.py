"""What a task needs before it may start: a slot on every node from its database up to the instance, and a host.

    path = tree.path("srv-id", "pool", "tenant_7")     # instance, server, pool, database
    full = tree.take(path)                              # None: taken, else the node that is full
    woken = tree.release(path, host)                    # queues that waited there and may try again

A level, a resource or a limit more is a node more in a path; nobody else knows how many there are.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Any, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")

UNKNOWN = 4  # sessions at a server that was not reached yet; its host finds out
ENDLESS = 2**31


class Node:
    """`slots` is None where nothing is limited; `reason` is what a target says that waits here."""

    __slots__ = ("name", "parked", "reason", "slots", "used")

    def __init__(self, name: str, reason: str, slots: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.slots = slots
        self.used = 0
        self.parked: OrderedDict[Queue[Any], None] = OrderedDict()

    @property
    def room(self) -> int:
        return ENDLESS if self.slots is None else self.slots - self.used

    def wake(self) -> list["Queue[Any]"]:
        """As many as there is room for, those that came first."""
        if not self.parked:
            return []
        number = max(0, min(self.room, len(self.parked)))
        return [self.parked.popitem(last=False)[0] for _ in range(number)]

    def __repr__(self) -> str:
        return f"{self.name} {self.used}/{'∞' if self.slots is None else self.slots}"


class Queue(Generic[T]):
    """Tasks of one step of one run on one database: they need the same path."""

    __slots__ = ("at", "items", "job", "owner", "path")

    def __init__(self, owner: T, job: Hashable, path: tuple[Node, ...]) -> None:
        self.owner = owner
        self.job = job  # whose turn it is
        self.path = path
        self.items: deque[int] = deque()
        self.at: Node | None = None  # where it is parked


class HostNode(Node):
    __slots__ = ("id",)

    def __init__(self, id: UUID, slots: int) -> None:
        super().__init__(f"host {id}", "InstanceSlots", slots)
        self.id = id


class PoolNode(Node):
    __slots__ = ("per_database",)

    def __init__(self, name: str) -> None:
        super().__init__(name, "PoolConnections")
        self.per_database: int | None = None  # slots of each; None: as the server says


class DatabaseNode(Node):
    __slots__ = ("pool",)

    def __init__(self, name: str, pool: PoolNode | None) -> None:
        super().__init__(name, "DatabaseSlots")
        self.pool = pool


class ServerNode(Node):
    """Belongs to one host at a time: so its budget is kept by one process."""

    __slots__ = ("databases", "host", "per_database")

    def __init__(self, name: str, slots: int | None = UNKNOWN) -> None:
        super().__init__(name, "ServerConnections", slots)
        self.host: HostNode | None = None
        self.databases: dict[str, DatabaseNode] = {}
        self.per_database: int | None = None  # slots of each

    def slots_of(self, database: DatabaseNode) -> int | None:
        own = None if database.pool is None else database.pool.per_database
        return self.per_database if own is None else own


Path = tuple[Node, ...]


class ResourceTree:
    def __init__(self, slots: int) -> None:
        self.instance = Node("instance", "InstanceSlots", slots)
        self.servers: dict[str, ServerNode] = {}
        self.hosts: dict[UUID, HostNode] = {}
        self._nobody = Node("no host", "NoHost", 0)
        self._pools: dict[tuple[str, str], PoolNode] = {}

    def path(self, server: str, pool: str | None, database: str, *further: Node) -> Path:
        middle = (self.pool(server, pool),) if pool else ()
        inside = self._database(server, database, *middle)
        return (self.instance, self.server(server), *middle, inside, *further)

    def server(self, id: str) -> ServerNode:
        return self.servers.get(id) or self.servers.setdefault(id, ServerNode(id))

    def pool(self, server: str, name: str) -> PoolNode:
        key = server, name
        return self._pools.get(key) or self._pools.setdefault(
            key, PoolNode(f"{server}/elasticPools/{name}")
        )

    def _database(self, server: str, name: str, pool: PoolNode | None = None) -> DatabaseNode:
        above = self.server(server)
        node = above.databases.get(name)
        if node is None or node.pool is not pool:
            node = node or DatabaseNode(f"{server}/databases/{name}", pool)
            node.pool = pool
            node.slots = above.slots_of(node)
            above.databases[name] = node
        return node

    def nodes(self, path: Path) -> Path:
        """All that a task on this path needs: the host that its server belongs to as well."""
        host = self.host_of(path)
        return path if host is None else (*path, host)

    def take(self, path: Path) -> Node | None:
        """All or nothing."""
        for node in path:
            if node.room <= 0:
                return node
        host = self.host_of(path)
        if host is None or host.room <= 0:
            return host or self._nobody
        for node in (*path, host):
            node.used += 1
        return None

    def has_room_for(self, path: Path, host: UUID) -> bool:
        """For those that are there: no limit was lowered meanwhile, and that host still gets tasks."""
        known = self.hosts.get(host)
        return known is not None and all(node.room >= 0 for node in (*path, known))

    def hold(self, path: Path, host: UUID) -> None:
        """What was taken before this core began: the limits have nothing to say about it."""
        known = self.hosts.get(host)
        server = path[1]
        if known is not None and isinstance(server, ServerNode):
            server.host = server.host or known
            known.used += 1
        for node in path:
            node.used += 1

    def release(self, path: Path, host: UUID) -> list["Queue[Any]"]:
        known = self.hosts.get(host)
        nodes = path if known is None else (*path, known)
        woken: list[Queue[Any]] = []
        for node in nodes:
            node.used -= 1
            woken += node.wake()
        return woken

    def limit(self, node: Node, slots: int | None) -> list["Queue[Any]"]:
        node.slots = slots
        return node.wake()

    def see_hosts(self, slots: dict[UUID, int], running: dict[UUID, int]) -> list["Queue[Any]"]:
        """Those that may get tasks; a server whose host is not among them is given to another."""
        woken: list[Queue[Any]] = []
        for id in self.hosts.keys() - slots.keys():
            gone = self.hosts.pop(id)
            woken += gone.parked
            for server in self.servers.values():
                if server.host is gone:
                    server.host = None
        for id, number in slots.items():
            host = self.hosts.get(id)
            if host is None:
                host = self.hosts[id] = HostNode(id, number)
                host.used = running.get(id, 0)
            woken += self.limit(host, number)
        self._nobody.slots = None if self.hosts else 0
        return woken + self._nobody.wake()

    def missing(self, path: Path) -> Node | None:
        """What is full beside the path itself: a host with room, or any host at all."""
        host = self.host_of(path)
        if host is None:
            return self._nobody
        return host if host.room <= 0 else None

    def host_of(self, path: Path) -> HostNode | None:
        server = path[1]
        assert isinstance(server, ServerNode)
        if server.host is None and self.hosts:
            server.host = max(self.hosts.values(), key=lambda host: (host.room, str(host.id)))
        return server.host
