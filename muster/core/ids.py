"""Resource ids: an id is a chain of key/name pairs, compared without case, printed as it was given."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from muster.core.errors import InvalidRequest

Pair = tuple[str, str]
DOTS = frozenset({".", ".."})
LONGEST = 4096  # characters; a longer text is not split


@dataclass(frozen=True, eq=False)
class ResourceId:
    """`/providers/Microsoft.Sql` is a pair like any other, so that one rule parses everything."""

    pairs: tuple[Pair, ...] = ()

    @classmethod
    def parse(cls, text: str, *, target: str | None = None) -> "ResourceId":
        """Reads an id out of a body; refuses what is not one, naming the field."""
        segments = text.split("/")[1:] if len(text) <= LONGEST else [""]
        if segments and not segments[-1]:
            segments.pop()
        wrong = not text.startswith("/") or len(segments) % 2 or not all(map(str.strip, segments))
        if wrong or not DOTS.isdisjoint(segments):
            raise InvalidRequest(
                f"'{text[:200]}' is not a resource id; expected /subscriptions/{{id}}/…",
                code="InvalidResourceId",
                target=target,
            )
        return cls(tuple(zip(segments[::2], segments[1::2], strict=True)))

    @cached_property
    def text(self) -> str:
        return "".join(f"/{key}/{name}" for key, name in self.pairs) or "/"

    @cached_property
    def key(self) -> str:
        """The form to store, index and compare."""
        return self.text.lower()

    @property
    def name(self) -> str:
        return self.pairs[-1][1] if self.pairs else ""

    @cached_property
    def type(self) -> str:
        """The ARM type, as in `Microsoft.Sql/servers/databases`."""
        namespace = "Microsoft.Resources"
        keys: list[str] = []
        for key, name in self.pairs:
            if key.lower() == "providers":
                namespace, keys = name, []
            elif key.lower() == "resourcegroups" and namespace == "Microsoft.Resources":
                keys = [key]
            else:
                keys.append(key)
        return "/".join([namespace, *keys]) if keys else "Microsoft.Resources/tenants"

    @property
    def parent(self) -> "ResourceId":
        pairs = self.pairs[:-1]
        if pairs and pairs[-1][0].lower() == "providers":
            pairs = pairs[:-1]
        return ResourceId(pairs)

    def ancestors(self) -> Iterator["ResourceId"]:
        """Itself first, the tenant root last."""
        here = self
        while here.pairs:
            yield here
            here = here.parent
        yield here

    def child(self, *pairs: Pair) -> "ResourceId":
        return ResourceId((*self.pairs, *pairs))

    def named(self, key: str) -> str | None:
        """The name after a fixed segment: `named("servers")`."""
        wanted = key.lower()
        return next((name for k, name in self.pairs if k.lower() == wanted), None)

    def upto(self, key: str) -> "ResourceId":
        """The id cut after a fixed segment: the server of a database."""
        wanted = key.lower()
        for at, (k, _) in enumerate(self.pairs):
            if k.lower() == wanted:
                return ResourceId(self.pairs[: at + 1])
        raise KeyError(key)

    @property
    def subscription(self) -> str | None:
        return self.named("subscriptions")

    @property
    def resource_group(self) -> str | None:
        return self.named("resourceGroups")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceId) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text


TENANT = ResourceId()
