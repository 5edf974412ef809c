"""Checks one YAML document against its kind and keeps the line of each field."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from muster.cli.declared.document import Document, SecretSource, Step
from muster.cli.declared.kinds import (
    JOB,
    KINDS,
    MARK,
    STEP,
    Array,
    Field,
    Kind,
    Labels,
    Object,
    Text,
    Word,
)
from muster.cli.typed import did_you_mean, plain

TAG = "tag:yaml.org,2002:"
SHOWN = 40  # letters of a value in a message
OTHER_NAMES = {plain(word): kind for kind in KINDS.values() for word in (kind.name, kind.noun)}
SECRET = "a secret does not belong in a file: use {0}File or {0}Env"  # noqa: S105 - the words of a message
ELSEWHERE = {
    "command": "SQL stands in action.value, or in the file that commandFile names",
    "id": "it follows from kind, name and account: leave it out",
    "properties": "they stand beside kind and name: leave this level out",
    "stepId": "a step's number is its place in the list: leave it out",
    "targetId": "only the API sets it: leave it out",
    "version": "only the API sets it: leave it out",
}


class Checker:
    def __init__(self, file: str, folder: Path) -> None:
        self._problems: list[tuple[int, str]] = []
        self._file = file
        self._folder = folder
        self._lines: dict[str, int] = {}

    @property
    def problems(self) -> list[str]:
        return [message for _, message in sorted(self._problems)]

    def document(self, root: Node) -> Document | None:
        """None where something is wrong with it."""
        fields = self._mapping(root, "")
        if fields is None:
            return None
        kind = self._kind(root, fields.pop("kind", None))
        name = self._name(root, "", fields)
        if kind is None:
            return None
        steps = self._steps(fields.pop("steps", None)) if kind is JOB else None
        secret = self._secret(kind, fields) if kind.secret else None
        properties = self._fields(fields, kind.properties, "", more=kind.more)
        if secret and properties.get("reference"):
            self._wrong(
                root, "", f"state either reference or {kind.secret}File or {kind.secret}Env"
            )
        if MARK in (properties.get("labels") or {}):
            self._wrong(root, "labels", f"'{MARK}' is set by muster apply: leave it out")
        if self._problems:
            return None
        return Document(kind, name, properties, steps, secret, self._file, self._lines)

    def _kind(self, root: Node, node: Node | None) -> Kind | None:
        if node is None:
            self._wrong(root, "kind", f"it is missing: one of {', '.join(KINDS)}")
            return None
        if not self._is(node, "str") or not isinstance(node, ScalarNode):
            self._wrong(node, "kind", f"expected one of {', '.join(KINDS)}")
            return None
        kind = OTHER_NAMES.get(plain(node.value))
        if kind is None:
            near = did_you_mean(node.value, KINDS)
            self._wrong(node, "kind", f"there is no kind '{node.value}'{near or _one_of(KINDS)}")
        return kind

    def _name(self, around: Node, path: str, fields: dict[str, Node]) -> str:
        node = fields.pop("name", None)
        if node is None:
            self._wrong(around, f"{path}name", "it is missing")
            return ""
        name = self._value(node, Text(), f"{path}name")
        if name == "":
            self._wrong(node, f"{path}name", "it is empty")
        return name if isinstance(name, str) else ""

    def _steps(self, node: Node | None) -> tuple[Step, ...] | None:
        if node is None:
            return None
        self._lines["steps"] = _line(node)
        if not isinstance(node, SequenceNode):
            self._wrong(node, "steps", f"expected a list of steps, not {_what(node)}")
            return None
        steps = [self._step(each, f"steps[{at}]") for at, each in enumerate(node.value)]
        names: dict[str, int] = {}
        for at, step in enumerate(steps):
            first = names.setdefault(step.name.lower(), at)
            if step.name and first != at:
                self._wrong(node.value[at], f"steps[{at}].name", f"'{step.name}' is there twice")
        return tuple(steps)

    def _step(self, node: Node, path: str) -> Step:
        fields = self._mapping(node, path)
        if fields is None:
            return Step("", {})
        name = self._name(node, f"{path}.", fields)
        file = fields.pop("commandFile", None)
        properties = self._fields(fields, STEP, f"{path}.", more=("name", "commandFile"))
        if file is not None:
            if "action" in properties:
                self._wrong(file, f"{path}.commandFile", "state either commandFile or action")
            properties["action"] = {"value": self._script(file, f"{path}.commandFile")}
            self._lines[f"{path}.action"] = _line(file)
        return Step(name, properties)

    def _script(self, node: Node, path: str) -> str:
        name = self._value(node, Text(), path)
        if not isinstance(name, str):
            return ""
        file = self._folder / name
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            self._wrong(node, path, f"{file} can't be read: {error}")
            return ""

    def _secret(self, kind: Kind, fields: dict[str, Node]) -> SecretSource | None:
        """A secret in the file itself is not repeated in the message."""
        written = fields.pop(kind.secret, None)
        if written is not None:
            self._wrong(written, kind.secret, SECRET.format(kind.secret))
        said = [name for name in kind.more if name in fields]
        nodes = {name: fields.pop(name) for name in said}
        if len(said) > 1:
            self._wrong(nodes[said[1]], said[1], f"state either {said[0]} or {said[1]}")
        if not said:
            return None
        text = self._value(nodes[said[0]], Text(), said[0])
        place = f"{self._file}:{_line(nodes[said[0]])}"
        if not isinstance(text, str) or not text:
            self._wrong(nodes[said[0]], said[0], "it is empty")
            return None
        file = None if said[0].endswith("Env") else self._folder / text
        return SecretSource(place, said[0], text, file)

    def _fields(
        self, fields: dict[str, Node], of: Object, path: str, *, more: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        values = {}
        for name, node in fields.items():
            if name in of.fields:
                values[name] = self._value(node, of.fields[name], path + name)
            else:
                self._unknown(node, path, name, [*of.fields, *more])
        return values

    def _unknown(self, node: Node, path: str, name: str, known: list[str]) -> None:
        hint = f"; {ELSEWHERE[name]}" if name in ELSEWHERE else did_you_mean(name, known)
        self._wrong(node, path + name, f"there is no such field{hint or _one_of(known)}")

    def _value(self, node: Node, field: Field, path: str) -> Any:
        self._lines[path] = _line(node)
        if self._is(node, "null"):
            if not field.removable:
                self._wrong(node, path, f"null is not possible, expected {field.expected}")
            return None
        match field, node:
            case Object(), _:
                inner = self._mapping(node, path)
                return {} if inner is None else self._fields(inner, field, f"{path}.")
            case Labels(), _:
                inner = self._mapping(node, path) or {}
                return {
                    name: self._value(each, Text(), f"{path}.{name}")
                    for name, each in inner.items()
                }
            case Array(of=item), SequenceNode(value=nodes):
                return [self._value(each, item, f"{path}[{at}]") for at, each in enumerate(nodes)]
            case _, ScalarNode():
                return self._scalar(node, field, path)
        self._wrong(node, path, f"expected {field.expected}, not {_what(node)}")
        return None

    def _scalar(self, node: ScalarNode, field: Field, path: str) -> Any:
        take = field.TAKES.get(node.tag.removeprefix(TAG))
        value = take(node.value) if take else None
        if value is not None and field.fits(value):
            return value
        hint = ""
        if isinstance(field, Word):
            hint = did_you_mean(node.value, field.words)
        elif take is None and "str" in field.TAKES and node.tag.startswith(TAG):
            hint = f'; in quotes it is a text: "{node.value[:SHOWN]}"'
        self._wrong(node, path, f"expected {field.expected}, not {_what(node)}{hint}")
        return None

    def _mapping(self, node: Node, path: str) -> dict[str, Node] | None:
        """Its fields; each key once, and a text."""
        self._lines[path] = _line(node)
        if not isinstance(node, MappingNode):
            self._wrong(node, path, f"expected fields, not {_what(node)}")
            return None
        fields: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._wrong(key, path, "the name of a field is a text")
            elif key.value in fields:
                first = _line(fields[key.value])
                self._wrong(key, _join(path, key.value), f"it is stated in line {first} already")
            else:
                fields[key.value] = value
        return fields

    def _is(self, node: Node, type: str) -> bool:
        return bool(node.tag == TAG + type)

    def _wrong(self, node: Node, path: str, message: str) -> None:
        line = max(_line(node), self._lines.get(path, 0))  # of the field, not of what is around it
        where = f"{self._file}:{line}: "
        self._problems.append((line, f"{where}{path}: {message}" if path else where + message))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _one_of(names: Iterable[str]) -> str:
    return f"; there are: {', '.join(names)}"


def _what(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "fields"
    if not node.tag.startswith(TAG):
        return f"a value with the tag {node.tag}"
    value = node.value if len(node.value) <= SHOWN else node.value[:SHOWN] + "…"
    return f"'{value}'"
