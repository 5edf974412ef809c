"""Which servers may be connected to: pure rules over names, addresses and ports.

Deny comes before allow:

1. Our own metadata database, Redis and listeners (`own`) may never be reached, nor what
   `target_deny` names.
2. Embedded servers (`extra`, exact host and port) may be reached.
3. The port is one of `target_ports`, and not one of another well-known service unless it is listed
   by itself.
4. Loopback, link-local, metadata services, translated and other special addresses are closed. An
   entry of `target_allow` that lies inside such a range opens that part of it; a wide one such as
   0.0.0.0/0 does not.
5. If `target_allow` has any other entry, it is the full list of what may be reached.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from muster.core.errors import FieldError
from muster.core.settings import Settings, SettingsError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Pair = tuple[str, int]
Weak = tuple[str, int, str, str]  # host, port, sslMode, method
T = TypeVar("T")

CODE = "InvalidTargetServer"
OWN = "Muster's own databases and services can't be targets"
DEFAULT_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379}
ALLOWED = (
    "An operator adds {entry} to MUSTER_TARGET_ALLOW (addresses, networks and host patterns, each with an optional "
    ":port, separated by commas) in the environment of Muster's processes, or starts `muster up --allow-target "
    "{entry}`; it counts after a restart"
)
PORTS = (
    "An operator adds it to MUSTER_TARGET_PORTS (numbers and ranges, separated by commas; now {ports}) in the "
    "environment of Muster's processes; it counts after a restart"
)
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
PATTERN = re.compile(r"[a-z0-9*_.-]{1,253}", re.ASCII)
MAPPED = ipaddress.ip_network("::ffff:0:0/96")
NAT64 = ipaddress.ip_network("64:ff9b::/96")

CLOSED: dict[Network, str] = {
    ipaddress.ip_network(network): kind
    for network, kind in {
        "0.0.0.0/8": "this network",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local and cloud metadata",
        "168.63.129.16/32": "cloud metadata",
        "100.64.0.0/10": "carrier-grade NAT",
        "192.0.0.0/24": "protocol assignments",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "::/96": "loopback and IPv4-compatible",
        "64:ff9b:1::/48": "local NAT64",
        "100::/64": "discard",
        "2001::/32": "Teredo",
        "2002::/16": "6to4",
        "fd00:ec2::/32": "cloud metadata",
        "fd20:ce::254/128": "cloud metadata",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}
# NFS, Docker, etcd, MySQL, RDP, Redis, Kubernetes, Elasticsearch, kubelet, memcached, MongoDB
OTHERS = frozenset(
    {2049, 2375, 2376, 2379, 2380, 3306, 3389, 6379, 6443, 9200, 9300, 10250, 11211, 27017}
)


@dataclass(frozen=True)
class Entry:
    """One word of `target_allow` or `target_deny`: a network or a host pattern, maybe one port."""

    network: Network | None = None
    pattern: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Entry":
        rest, port = text.lower(), None
        if match := re.fullmatch(r"\[([^\]]+)\](?::(\d{1,5}))?", rest):
            rest, port = match[1], match[2]
        elif rest.count(":") == 1:
            rest, _, port = rest.partition(":")
        number = None if port is None else int(port)
        try:
            return cls(network=ipaddress.ip_network(rest, strict=False), port=number)
        except ValueError:
            if "/" in rest or not PATTERN.fullmatch(rest) or NUMBER.fullmatch(rest.split(".")[-1]):
                raise ValueError(f"'{text}' is neither a CIDR nor a host pattern") from None
        return cls(pattern=rest, port=number)

    def covers(self, host: str, address: Address, port: int) -> bool:
        if self.port not in (None, port):
            return False
        if self.network:
            return address.version == self.network.version and address in self.network
        pattern = re.escape(self.pattern or "").replace(r"\*", ".*")
        return re.fullmatch(pattern, host.lower()) is not None

    @property
    def opens(self) -> Network | None:
        """The closed range of which it is a part: such an entry opens and does not restrict."""
        return next(
            (closed for closed in CLOSED if self.network and _inside(self.network, closed)), None
        )


class Addresses(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Those that the control plane decides on, beside what the settings say; also as engines are handed them."""

    embedded: frozenset[Pair] = frozenset()  # servers that Muster made
    own: frozenset[Pair] = frozenset()  # the control plane's: denied before anything is allowed
    weak: frozenset[Weak] = frozenset()  # where an Owner allowed another login than SCRAM

    def authentication(self, host: str, port: int, ssl_mode: str) -> str | None:
        """The weak method that may be used there."""
        entries = (each for each in self.weak if each[:3] == (host, port, ssl_mode))
        return next((method for *_, method in entries), None)


@dataclass(frozen=True)
class Rules:
    allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    ports: tuple[range, ...] = (range(1024, 65_536),)
    extra: frozenset[Pair] = field(default=frozenset())
    own: frozenset[Pair] = field(default=frozenset())

    @classmethod
    def of(cls, settings: Settings, extra: Iterable[Pair] = ()) -> "Rules":
        wrong: list[str] = []
        allow, deny = (
            _each(Entry.parse, words, name, wrong)
            for words, name in (
                (settings.target_allow, "MUSTER_TARGET_ALLOW"),
                (settings.target_deny, "MUSTER_TARGET_DENY"),
            )
        )
        ports = _each(_ports, settings.target_ports, "MUSTER_TARGET_PORTS", wrong)
        if wrong:
            raise SettingsError("; ".join(wrong))
        return cls(allow, deny, ports, frozenset(extra), own_addresses(settings))

    def at(self, addresses: Addresses) -> "Rules":
        own = self.own | addresses.own
        return replace(self, extra=addresses.embedded, own=own)


def check_host_syntax(
    host: str, port: object, rules: Rules | None = None, *, target: str = "properties.endpoint"
) -> list[FieldError]:
    """What can be said without asking a name server, before anything is stored."""
    rules = rules or Rules()
    errors = []
    number = port if isinstance(port, int) and not isinstance(port, bool) else 0
    if not 1 <= number <= 65_535:
        errors.append(FieldError(f"{target}.port", "A port is a number from 1 to 65535.", CODE))
    elif not _port_is_open(number, rules) and (host, number) not in rules.extra:
        message = f"Port {number} is not among the ports that Muster may connect to. {_ports_advice(rules)}."
        errors.append(FieldError(f"{target}.port", message, CODE))
    if wrong := _name_error(host, number, rules):
        message = f"'{host[:100]}' can't be used as a server: {wrong}."
        errors.append(FieldError(f"{target}.host", message, CODE))
    return errors


def check_address(address: Address, port: int, rules: Rules, *, host: str = "") -> str | None:
    """Why it may not be connected to, or None. `host` is the name that led there."""
    host = (host or str(address)).lower()
    if (host, port) not in rules.extra and not _port_is_open(port, rules):
        return f"port {port} is not allowed. {_ports_advice(rules)}"
    return _address_error(host, real(address), port, rules)


def address_of(host: str) -> Address | None:
    """Only the canonical forms: no 127.1, no octal, no zone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return None if "%" in host else address


def own_addresses(settings: Settings) -> frozenset[Pair]:
    """Where the control plane's databases and listeners are, as far as its settings say it."""
    secret = (settings.database_url, settings.redis_url)
    urls = [url.reveal() for url in secret if url]
    urls += [url for url in (settings.internal_url, settings.node_agent_url) if url]
    listeners = (settings.listen, settings.internal_listen, settings.node_agent_listen)
    urls += [f"http://{listener}" for listener in listeners]
    # Port 0 stands for one that is known only to the process that listens.
    return frozenset(pair for url in urls for pair in servers_of(url) if pair[1])


def servers_of(url: str) -> set[Pair]:
    """The (host, port) pairs of a URL; a server behind a socket may listen on loopback as well."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    default = str(DEFAULT_PORTS.get(parts.scheme, 5432))
    ports = ",".join(query.get("port", [])).split(",")
    named = ",".join([parts.netloc.rpartition("@")[2], *query.get("host", [])])
    pairs = set()
    for word in named.split(","):
        if match := re.fullmatch(r"\[?(.*?)\]?(?::(\d+))?", unquote(word)):
            host = "127.0.0.1" if match[1].startswith("/") else match[1].lower()
            numbers = [match[2]] if match[2] else [port for port in ports if port] or [default]
            pairs |= {(host, int(number)) for number in numbers if host and number.isdecimal()}
    return pairs


def _name_error(host: str, port: int, rules: Rules) -> str | None:
    name = host.lower()
    if literal := address_of(name):
        mapped = literal.version == 6 and literal in MAPPED
        wrong = _address_error(name, real(literal), port, rules)
        return "an IPv4 address written as IPv6 is not accepted" if mapped else wrong
    labels = name.split(".")
    if not name.isascii() or len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        return "a server is a full host name or an IP address, nothing else"
    if NUMBER.fullmatch(labels[-1]):
        return "that is no IP address in its usual form"
    if labels[-1] in {"localhost", "localdomain"}:
        advice = _allow_advice("127.0.0.1", port)
        return f"its address is closed (loopback); write 127.0.0.1 or ::1 as the host. {advice}"
    if len(labels) == 1 and not any(entry.pattern == name for entry in rules.allow):
        return f"the name has no domain; write it in full. {_allow_advice(name, port)}"
    return OWN if (name, port) in rules.own else None


def _address_error(host: str, address: Address, port: int, rules: Rules) -> str | None:
    if (str(address), port) in rules.own:
        return OWN
    if any(entry.covers(host, address, port) for entry in rules.deny):
        return "it is denied by MUSTER_TARGET_DENY"
    if (host, port) in rules.extra and host == str(address):
        return None
    allowed = [entry for entry in rules.allow if entry.covers(host, address, port)]
    for closed, kind in CLOSED.items():
        if address.version == closed.version and address in closed:
            opened = any(entry.opens == closed for entry in allowed)
            advice = _allow_advice(str(address), port)
            return None if opened else f"its address is closed ({kind}). {advice}"
    restricts = any(entry.opens is None for entry in rules.allow)
    if not restricts or allowed:
        return None
    return f"it is not in MUSTER_TARGET_ALLOW. {_allow_advice(host, port)}"


def _allow_advice(host: str, port: int) -> str:
    return ALLOWED.format(entry=f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _ports_advice(rules: Rules) -> str:
    """A port of another service, such as Redis, is open only where it is listed by itself."""
    listed = [f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in rules.ports]
    return PORTS.format(ports=", ".join(listed) or "none")


def _port_is_open(port: int, rules: Rules) -> bool:
    matching = [ports for ports in rules.ports if port in ports]
    return bool(matching) and (port not in OTHERS or any(len(ports) == 1 for ports in matching))


def real(address: Address) -> Address:
    """Mapped and NAT64 addresses end at the IPv4 address inside them."""
    if isinstance(address, ipaddress.IPv6Address) and (address in MAPPED or address in NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _inside(network: Network, closed: Network) -> bool:
    return (
        network.version == closed.version
        and network.network_address in closed
        and network.prefixlen >= closed.prefixlen
    )


def _ports(text: str) -> range:
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    if not match or int(match[2] or match[1]) > 65_535:
        raise ValueError(f"'{text}' is no port and no range of ports")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def _each(
    parse: Callable[[str], T], words: Iterable[str], name: str, wrong: list[str]
) -> tuple[T, ...]:
    """The readable entries; `wrong` gets the others."""
    parts = []
    for word in words:
        try:
            parts.append(parse(word))
        except ValueError as error:
            wrong.append(f"{name}: {error}")
    return tuple(parts)
