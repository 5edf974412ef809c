"""The shape of a body against a declared struct: all that is wrong with it at once.

Compiled once per type. What comes out holds only known, writable fields: read-only ones that a
client sends back are dropped, and null counts as absent except where it clears (`merge`) or is refused (actions).
"""

import difflib
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect as types

from muster.core.errors import FieldError
from workflows.model.wire import Properties

CONTENT = "InvalidRequestContent"
VALUE = "InvalidParameterValue"
MOST_ERRORS = 50
MOST_HINTS = 5  # the nearest name costs a comparison with every known one
INT32, INT64 = 2**31, 2**63

Check = Callable[[Any, str, "Findings"], Any]


class Findings:
    """Where the errors of one body are gathered."""

    __slots__ = ("errors", "merge", "nulls")

    def __init__(self, *, merge: bool, nulls: bool = True) -> None:
        self.merge = merge
        self.nulls = nulls  # False: refused, since a run without a limit is not what was meant
        self.errors: list[FieldError] = []

    def add(self, target: str, message: str, code: str = CONTENT) -> None:
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(FieldError(target, message, code))

    def add_unknown(self, target: str, name: str, names: list[str]) -> None:
        """The work for a body has a limit, however many unknown members it has."""
        if len(self.errors) < MOST_ERRORS:
            self.add(target, unknown(name, names if len(self.errors) < MOST_HINTS else []))


class Shape:
    """One struct: its fields by wire name."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        info = types.type_info(struct)
        assert isinstance(info, types.StructType)
        self.fields: dict[str, Check] = {
            f.encode_name: compile_type(f.type, f.encode_name) for f in info.fields
        }
        own = struct if issubclass(struct, Properties) else Properties
        self.read_only = own.READ_ONLY
        self.required = own.REQUIRED
        self.required |= {f.encode_name for f in info.fields if f.required}
        self.known = sorted(self.fields.keys() | self.read_only)

    def __call__(self, value: Any, path: str, findings: Findings) -> Any:
        if not isinstance(value, dict):
            findings.add(path, f"Expected an object, got {_kind(value)}.")
            return None
        clean: dict[str, Any] = {}
        for name, member in value.items():
            check = self.fields.get(name)
            if check is None:
                if name not in self.read_only:
                    findings.add_unknown(_join(path, name), name, self.known)
            elif member is None:
                if findings.merge:
                    clean[name] = None
                elif not findings.nulls:
                    message = f"null is no value of '{name}': give one, or leave it out."
                    findings.add(_join(path, name), message)
            else:
                clean[name] = check(member, _join(path, name), findings)
        if not findings.merge:
            for name in sorted(self.required - clean.keys()):
                findings.add(
                    _join(path, name), "This field is required.", "MissingRequiredParameter"
                )
        return clean


@cache
def shape_of(struct: type[Properties]) -> Shape:
    return Shape(struct)


def compile_type(info: types.Type, name: str = "") -> Check:
    match info:
        case types.UnionType():
            options = [t for t in info.types if not isinstance(t, types.NoneType)]
            if len(options) > 1:
                return _boolean_or(options, name)
            return compile_type(options[0], name)
        case types.StructType():
            return Shape(info.cls)
        case types.ListType():
            return _list_of(compile_type(info.item_type, name))
        case types.DictType():
            return _map_of(compile_type(info.value_type, name))
        case _:
            return _scalar(info, name)


def _scalar(info: types.Type, name: str) -> Check:
    simple: dict[type[types.Type], Check] = {
        types.StrType: _string,
        types.BoolType: _boolean,
        types.FloatType: _number,
        types.IntType: _integer(INT64 if name.endswith("Bytes") else INT32),
        types.AnyType: _anything,
    }
    if isinstance(info, types.LiteralType):
        return _one_of(info.values)
    return simple[type(info)]


def unknown(name: str, names: list[str]) -> str:
    lowered = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower()[:100], lowered, n=1, cutoff=0.5)
    hint = f" Did you mean '{lowered[near[0]]}'?" if near else ""
    return f"The property '{name[:100]}' is not known.{hint}"


def _anything(value: Any, _path: str, _found: Findings) -> Any:
    return value


def _string(value: Any, path: str, findings: Findings) -> Any:
    if not isinstance(value, str):
        findings.add(path, f"Expected a string, got {_kind(value)}.")
    return value


def _boolean(value: Any, path: str, findings: Findings) -> Any:
    if not isinstance(value, bool):
        findings.add(path, f"Expected true or false, got {_kind(value)}.")
    return value


def _boolean_or(options: list[types.Type], name: str) -> Check:
    kind, words = options
    assert isinstance(kind, types.BoolType), (
        f"{name}: a field has one type, or is a boolean or a word"
    )
    assert isinstance(words, types.LiteralType), name
    allowed = ", ".join(("true", "false", *map(str, words.values)))

    def check(value: Any, path: str, findings: Findings) -> Any:
        if not isinstance(value, bool | str):
            findings.add(path, f"Expected one of {allowed}, got {_kind(value)}.")
        elif isinstance(value, str) and value not in words.values:
            findings.add(path, f"Expected one of {allowed}.", VALUE)
        return value

    return check


def _integer(limit: int) -> Check:
    def check(value: Any, path: str, findings: Findings) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            findings.add(path, f"Expected an integer, got {_kind(value)}.")
        elif not -limit <= value < limit:
            findings.add(path, f"Expected an integer of {limit.bit_length()} bits.")
        return value

    return check


def _number(value: Any, path: str, findings: Findings) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        findings.add(path, f"Expected a number, got {_kind(value)}.")
    return value


def _one_of(values: tuple[Any, ...]) -> Check:
    allowed = ", ".join(str(each) for each in values)

    def check(value: Any, path: str, findings: Findings) -> Any:
        if not isinstance(value, str):
            findings.add(path, f"Expected one of {allowed}, got {_kind(value)}.")
        elif value not in values:
            findings.add(path, f"Expected one of {allowed}.", VALUE)
        return value

    return check


def _list_of(item: Check) -> Check:
    def check(value: Any, path: str, findings: Findings) -> Any:
        if not isinstance(value, list):
            findings.add(path, f"Expected a list, got {_kind(value)}.")
            return value
        return [item(each, f"{path}[{at}]", findings) for at, each in enumerate(value)]

    return check


def _map_of(item: Check) -> Check:
    def check(value: Any, path: str, findings: Findings) -> Any:
        if not isinstance(value, dict):
            findings.add(path, f"Expected an object, got {_kind(value)}.")
            return value
        return {
            name: None
            if each is None and findings.merge
            else item(each, f"{path}.{name[:80]}", findings)
            for name, each in value.items()
        }

    return check


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:100]}" if path else name[:100]


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
