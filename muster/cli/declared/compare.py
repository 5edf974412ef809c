"""Compares what files state with what the account has. Pure: no I/O.

Only fields that are stated count, in objects of fields that REST knows; lists and labels are whole. Both sides are
brought into one form first: references by name, times in UTC, an empty text as none.
"""

from datetime import UTC, datetime
from typing import Any

from muster.cli.declared.kinds import MARK, Array, Field, Labels, Object, Reference, Text

NOTHING: tuple[Any, ...] = (None, {})


def plainly(field: Field, value: Any, account: str) -> Any:
    """In the form of an export; what says the same has the same form but for case."""
    if value is None or value in (field.default, ""):
        return None
    made: Any = value
    match field:
        case Object(fields=fields):
            known = {name: value[name] for name in fields if name in value}
            made = {name: plainly(fields[name], each, account) for name, each in known.items()}
        case Labels():
            made = {name: value[name] for name in sorted(value) if name != MARK} or None
        case Array(of=item):
            # An item is whole: a field without a value is not there.
            items = [_without_nothing(plainly(item, each, account)) for each in value]
            made = items if field.ordered else sorted(items, key=str.lower)
        case Reference(collection=collection):
            made = short(value, account, collection)
        case Text(is_time=True):
            made = _in_utc(value)
    return made


def differs(field: Field, stated: Any, current: Any) -> bool:
    """Of two plain values; what is not stated is not compared."""
    if isinstance(field, Object) and isinstance(stated, dict) and isinstance(current, dict):
        return any(
            differs(field.fields[name], each, current.get(name)) for name, each in stated.items()
        )
    return bool(_folded(field, stated) != _folded(field, current))


def shown(field: Field, stated: Any, current: Any) -> tuple[Any, Any]:
    """Before and after, as far as it is stated; what is the same is the same text in both."""
    if isinstance(field, Object) and isinstance(stated, dict):
        there = current if isinstance(current, dict) else {}
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for name, each in _in_order(field, stated).items():
            old, new = shown(field.fields[name], each, there.get(name))
            before |= {} if old in NOTHING else {name: old}
            after |= {} if new in NOTHING else {name: new}
        return before, after
    return (current, stated) if differs(field, stated, current) else (stated, stated)


def patch(field: Object, stated: dict[str, Any], current: dict[str, Any], account: str) -> Any:
    """The merge-patch that leads from the one to the other; empty when nothing differs.

    `stated` is as the file has it, `current` as REST shows it.
    """
    made = {}
    for name, value in stated.items():
        inner, old = field.fields[name], current.get(name)
        wanted, there = plainly(inner, value, account), plainly(inner, old, account)
        if not differs(inner, wanted, there):
            continue
        if isinstance(inner, Object) and isinstance(value, dict) and isinstance(old, dict):
            made[name] = patch(inner, value, old, account)
        elif isinstance(inner, Labels):
            gone = dict.fromkeys(set(there or {}) - set(value or {}))
            made[name] = {**gone, **(value or {})}
        else:
            made[name] = for_rest(inner, value, account)
    return made


def for_rest(field: Field, value: Any, account: str) -> Any:
    """As REST takes it: a name of a reference becomes an id."""
    match field:
        case Object(fields=fields) if isinstance(value, dict):
            return {name: for_rest(fields[name], each, account) for name, each in value.items()}
        case Array(of=item) if isinstance(value, list):
            return [for_rest(item, each, account) for each in value]
        case Reference(collection=collection) if value:
            return value if value.startswith("/") else f"{account}/{collection}/{value}"
    return value


def merged(field: Field, stated: Any, current: Any) -> Any:
    """What is there, with what is stated over it; null removes."""
    if not (isinstance(field, Object) and isinstance(stated, dict)):
        return stated
    there = current if isinstance(current, dict) else {}
    made = {name: there[name] for name in field.fields if name in there}
    made |= {
        name: merged(field.fields[name], each, made.get(name)) for name, each in stated.items()
    }
    return {name: each for name, each in made.items() if each is not None}


def without_nulls(value: Any) -> Any:
    """Of what is created: null says that it is not there."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return value


def missing(field: Object, stated: dict[str, Any], path: str = "") -> list[str]:
    """What REST needs to create it."""
    absent = [path + name for name in field.required if stated.get(name) is None]
    for name, value in stated.items():
        inner = field.fields[name]
        if isinstance(inner, Object) and isinstance(value, dict):
            absent += missing(inner, value, f"{path}{name}.")
        elif isinstance(inner, Array) and isinstance(inner.of, Object):
            for at, each in enumerate(value or ()):
                absent += missing(inner.of, each, f"{path}{name}[{at}].")
    return absent


def references(field: Field, value: Any, path: str, account: str) -> list[tuple[str, str, str]]:
    """Path, collection and name of everything of this account that a value names."""
    match field:
        case Object(fields=fields) if isinstance(value, dict):
            known = [name for name in value if name in fields]
            parts = [(fields[name], value[name], f"{path}.{name}") for name in known]
        case Array(of=item) if isinstance(value, list):
            parts = [(item, each, f"{path}[{at}]") for at, each in enumerate(value)]
        case Reference(collection=collection) if value:
            name = short(value, account, collection)
            return [] if name.startswith("/") else [(path.lstrip("."), collection, name)]
        case _:
            parts = []
    return [found for each in parts for found in references(*each, account)]


def short(reference: str, account: str, collection: str) -> str:
    """The name alone where it is of this account."""
    prefix = f"{account}/{collection}/"
    is_here = reference.lower().startswith(prefix.lower())
    return reference[len(prefix) :] if is_here else reference


def _folded(field: Field, value: Any) -> Any:
    """To compare by: where case does not count there is none; nothing is nothing."""
    match field:
        case Object(fields=fields) if isinstance(value, dict):
            parts = {name: _folded(fields[name], each) for name, each in value.items()}
            return {name: each for name, each in parts.items() if each is not None} or None
        case Array(of=item) if isinstance(value, list):
            return [_folded(item, each) for each in value]
    is_folded = field.folded or isinstance(field, Reference)
    if isinstance(value, bool):
        return str(value).lower()  # not the number 1
    return value.lower() if is_folded and isinstance(value, str) else value


def _in_order(field: Object, stated: dict[str, Any]) -> dict[str, Any]:
    return {name: stated[name] for name in field.fields if name in stated}


def _without_nothing(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if each is not None}


def _in_utc(text: str) -> str:
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # the year 1 in a zone east of Greenwich
        return text
    return at.isoformat().replace("+00:00", "Z")
