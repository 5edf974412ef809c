"""What a task needs before it starts: a slot on every node from its database up to the instance, and a host.

    path = tree.path("srv-id", "pool", "tenant_7")     # instance, server, pool, database
    tree.take(queue)                                    # True: taken; False: parked at the node that is full
    woken = tree.release(queue, host)                   # queues that were parked there and may try again

A further level, resource or limit is a further node in a path; no other module depends on their number.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")

UNKNOWN_SESSIONS = 4  # slots of a server until a host has read its limit
UNLIMITED = 2**31


class Node:
    """A limit. `slots` is None where it is unlimited; `reason` is the wait reason of targets parked here."""

    __slots__ = ("name", "parked", "reason", "slots", "used")

    def __init__(self, name: str, reason: str, slots: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.slots = slots
        self.used = 0
        self.parked: OrderedDict[Queue[Any], None] = OrderedDict()

    @property
    def room(self) -> int:
        return UNLIMITED if self.slots is None else self.slots - self.used

    def wake(self) -> list["Queue[Any]"]:
        """Unparks as many queues as there is room for, the oldest first."""
        return self._unpark(max(0, min(self.room, len(self.parked)))) if self.parked else []

    def wake_all(self) -> list["Queue[Any]"]:
        return self._unpark(len(self.parked))

    def _unpark(self, number: int) -> list["Queue[Any]"]:
        queues = [self.parked.popitem(last=False)[0] for _ in range(number)]
        for queue in queues:
            queue.parked_at = None
        return queues

    def __repr__(self) -> str:
        return f"{self.name} {self.used}/{'∞' if self.slots is None else self.slots}"


class Queue(Generic[T]):
    """Tasks of one step of one run on one database: they need the same path."""

    __slots__ = ("items", "job", "owner", "parked_at", "path")

    def __init__(self, owner: T, job: Hashable, path: tuple[Node, ...]) -> None:
        self.owner = owner
        self.job = job
        self.path = path
        self.items: deque[int] = deque()
        self.parked_at: Node | None = None


class HostNode(Node):
    __slots__ = ("id",)

    def __init__(self, id: UUID, slots: int) -> None:
        super().__init__(f"host {id}", "InstanceSlots", slots)
        self.id = id


class PoolNode(Node):
    __slots__ = ("per_database",)

    def __init__(self, name: str) -> None:
        super().__init__(name, "PoolConnections")
        self.per_database: int | None = None  # slots of each database; None: as of the server


class DatabaseNode(Node):
    __slots__ = ("pool",)

    def __init__(self, name: str, pool: PoolNode | None) -> None:
        super().__init__(name, "DatabaseSlots")
        self.pool = pool


class ServerNode(Node):
    """A server belongs to one host at a time, so that one process keeps its session budget."""

    __slots__ = ("databases", "host", "per_database")

    def __init__(self, name: str, slots: int | None = UNKNOWN_SESSIONS) -> None:
        super().__init__(name, "ServerConnections", slots)
        self.host: HostNode | None = None
        self.databases: dict[str, DatabaseNode] = {}
        self.per_database: int | None = None  # slots of each database

    def slots_of(self, database: DatabaseNode) -> int | None:
        own = None if database.pool is None else database.pool.per_database
        return self.per_database if own is None else own


Path = tuple[Node, ...]


class ResourceTree:
    def __init__(self, slots: int) -> None:
        self.instance = Node("instance", "InstanceSlots", slots)
        self.servers: dict[str, ServerNode] = {}
        self.hosts: dict[UUID, HostNode] = {}
        self._no_host = Node("no host", "NoHost", 0)
        self._paused_jobs: frozenset[Hashable] = frozenset()
        self._pools: dict[tuple[str, str], PoolNode] = {}

    def path(self, server: str, pool: str | None, database: str, *further: Node) -> Path:
        pools = (self.pool(server, pool),) if pool else ()
        node = self._database(server, database, *pools)
        return (self.instance, self.server(server), *pools, node, *further)

    def server(self, id: str) -> ServerNode:
        return self.servers.get(id) or self.servers.setdefault(id, ServerNode(id))

    def pool(self, server: str, name: str) -> PoolNode:
        key = server, name
        return self._pools.get(key) or self._pools.setdefault(
            key, PoolNode(f"{server}/elasticPools/{name}")
        )

    def _database(self, server: str, name: str, pool: PoolNode | None = None) -> DatabaseNode:
        parent = self.server(server)
        node = parent.databases.get(name)
        if node is None or node.pool is not pool:
            node = node or DatabaseNode(f"{server}/databases/{name}", pool)
            node.pool = pool
            node.slots = parent.slots_of(node)
            parent.databases[name] = node
        return node

    def nodes(self, path: Path) -> Path:
        """The path and the host that its server belongs to."""
        host = self.host_of(path)
        return path if host is None else (*path, host)

    def take(self, queue: "Queue[Any]") -> bool:
        """Takes a slot on every node and the host, or none: then the queue is parked at the full node."""
        full = self._full_node(queue.path)
        if full is not None:
            queue.parked_at = full
            full.parked[queue] = None
            return False
        for node in self.nodes(queue.path):
            node.used += 1
        return True

    def unpark(self, queue: "Queue[Any]") -> None:
        if queue.parked_at is not None:
            queue.parked_at.parked.pop(queue, None)
            queue.parked_at = None

    def pass_on(self, queue: "Queue[Any]") -> list["Queue[Any]"]:
        """Wakes other queues on the nodes of this one, which was woken for room that it can't use."""
        nodes = [node for node in self.nodes(queue.path) if node is not queue.parked_at]
        return [other for node in nodes for other in node.wake()]

    def blocker(self, queue: "Queue[Any]") -> Node | None:
        """The node that the queue waits for; None when a task of it could start now."""
        return queue.parked_at or self._full_node(queue.path)

    def _full_node(self, path: Path) -> Node | None:
        for node in path:
            if node.room <= 0:
                return node
        host = self.host_of(path)
        if host is None:
            return self._no_host
        return host if host.room <= 0 else None

    def pause_jobs(self, jobs: Iterable[Hashable]) -> None:
        """Replaces the set of paused jobs: none of their tasks starts."""
        self._paused_jobs = frozenset(jobs)

    def is_paused(self, job: Hashable) -> bool:
        return job in self._paused_jobs

    def has_room_for(self, path: Path, host: UUID) -> bool:
        """For tasks that hold their slots: no limit is below its use, and the host still gets tasks."""
        node = self.hosts.get(host)
        return node is not None and all(each.room >= 0 for each in (*path, node))

    def hold(self, path: Path, host: UUID) -> None:
        """Takes the slots of a task that was reserved before this core started; limits do not apply."""
        host_node = self.hosts.get(host)
        server = path[1]
        if host_node is not None and isinstance(server, ServerNode):
            server.host = server.host or host_node
            host_node.used += 1
        for node in path:
            node.used += 1

    def release(self, queue: "Queue[Any]", host: UUID) -> list["Queue[Any]"]:
        """Frees the slots of a finished task; returns the queues that may try again."""
        host_node = self.hosts.get(host)
        nodes = queue.path if host_node is None else (*queue.path, host_node)
        woken: list[Queue[Any]] = []
        for node in nodes:
            node.used -= 1
            woken += node.wake()
        return woken

    def limit(self, node: Node, slots: int | None) -> list["Queue[Any]"]:
        node.slots = slots
        return node.wake()

    def set_hosts(self, slots: dict[UUID, int], running: dict[UUID, int]) -> list["Queue[Any]"]:
        """Replaces the hosts that get tasks; a server of another host is assigned to one of them."""
        woken: list[Queue[Any]] = []
        for id in self.hosts.keys() - slots.keys():
            gone = self.hosts.pop(id)
            woken += gone.wake_all()
            for server in self.servers.values():
                if server.host is gone:
                    server.host = None
        for id, number in slots.items():
            host = self.hosts.get(id)
            if host is None:
                host = self.hosts[id] = HostNode(id, number)
                host.used = running.get(id, 0)
            woken += self.limit(host, number)
        self._no_host.slots = None if self.hosts else 0
        return woken + self._no_host.wake()

    def host_of(self, path: Path) -> HostNode | None:
        server = path[1]
        assert isinstance(server, ServerNode)
        if server.host is None and self.hosts:
            server.host = max(self.hosts.values(), key=lambda host: (host.room, str(host.id)))
        return server.host
