"""Named queries from `.sql` files: SQL text lives there and nowhere else."""

import re
from importlib import resources

NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


class Queries:
    """`Q.take_lease` is the text after `-- name: take_lease`."""

    def __init__(self, package: str, *files: str) -> None:
        self._texts: dict[str, str] = {}
        self.source = package
        for file in files:
            text = (resources.files(package) / file).read_text(encoding="utf-8")
            _, *parts = NAME.split(text)
            for name, body in zip(parts[::2], parts[1::2], strict=True):
                if name in self._texts:
                    raise ValueError(f"{package}/{file}: query {name} is defined twice")
                self._texts[name] = body.strip().rstrip(";")

    def __getattr__(self, name: str) -> str:
        try:
            return self._texts[name]
        except KeyError:
            names = ", ".join(sorted(self._texts))
            raise AttributeError(f"no query {name} in {self.source}; known: {names}") from None

    def items(self) -> list[tuple[str, str]]:
        return sorted(self._texts.items())
