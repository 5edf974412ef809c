"""Where a connector learns the addresses that the control plane decides on."""

from dataclasses import dataclass
from typing import Protocol

from muster.core.egress import Addresses, Pair


class Source(Protocol):
    """Of the addresses that the control plane decides on."""

    async def current(self) -> Addresses: ...

    async def newest(self) -> Addresses:
        """As they are now, however much it takes to know them."""
        ...


@dataclass(frozen=True)
class Fixed:
    addresses: Addresses

    async def current(self) -> Addresses:
        return self.addresses

    newest = current


def embedded(*pairs: Pair) -> Fixed:
    """Nothing that is closed is open but these."""
    return Fixed(Addresses(embedded=frozenset(pairs)))


NONE = embedded()
