"""Server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True)
class Event:
    """Something that happened; `kind` says what, and `data` what is known of it."""

    kind: str
    number: int | None  # of the last event that was seen: a later stream goes on `after` it
    data: dict[str, Any]


class Parser:
    """Bytes to events; lines of a kind that is not known are ignored, as the standard asks."""

    def __init__(self) -> None:
        self._kind = "message"
        self._data: list[str] = []
        self._number: int | None = None
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Lines end at a line feed alone: JSON may contain what Unicode calls the end of a line."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            yield from self._line(line.removesuffix(b"\r").decode("utf-8", "replace"))

    def _line(self, line: str) -> Iterator[Event]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if self._data:
                yield Event(self._kind, self._number, msgspec.json.decode("\n".join(self._data)))
            self._kind, self._data = "message", []
        elif name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and value.isdigit():
            self._number = int(value)
