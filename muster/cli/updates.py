"""What `update` promises: only what is said is changed, `--reset` puts a value back to its default, the rest stays."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.cli.arguments import Parser, add_choice, pair
from muster.cli.client import Api, Refused

Document = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """An option and the place in the API's document that it sets, for create and for update.

    `reset`: it has a default, to which --reset puts it back; or the place that --reset empties.
    `read`: what is typed → what the API takes.
    """

    option: str
    path: str
    argument: Mapping[str, Any]
    reset: bool | str = True
    read: Callable[[Any], Any] | None = None

    @property
    def emptied(self) -> str:
        return self.reset if isinstance(self.reset, str) else self.path

    @property
    def name(self) -> str:
        return self.option.lstrip("-")

    @property
    def is_map(self) -> bool:
        return self.argument.get("type") is pair

    def is_said(self, options: argparse.Namespace) -> bool:
        name = _attribute(self.name)
        names = (name, f"remove_{name}") if self.is_map else (name,)
        return any(getattr(options, each, None) is not None for each in names)

    def value(self, options: argparse.Namespace) -> Any:
        """None: nothing was said about it. In a map, None is a key that goes."""
        typed = getattr(options, _attribute(self.name), None)
        if self.is_map:
            return self._keys(typed or (), getattr(options, f"remove_{_attribute(self.name)}", ()))
        return typed if typed is None or self.read is None else self.read(typed)

    def _keys(self, kept: Sequence[tuple[str, str]], removed: Sequence[str] | None) -> Any:
        both = sorted(dict(kept).keys() & set(removed or ()))
        if both:
            raise Refused(f"{self.option} and --remove-{self.name} both name '{both[0]}'")
        return dict(kept) | dict.fromkeys(removed or ()) or None


def setting(
    option: str,
    path: str,
    *,
    reset: bool | str = True,
    read: Callable[[Any], Any] | None = None,
    **argument: Any,
) -> Setting:
    return Setting(option, path, argument, reset, read)


def pairs(option: str, path: str, about: str = "may be given several times") -> Setting:
    """A map, key by key: KEY=VALUE sets one, --remove-… removes one, the others stay."""
    return setting(option, path, action="append", type=pair, metavar="KEY=VALUE", help=about)


def switch(option: str, path: str, about: str, *, to: bool) -> Setting:
    """One of two options that say yes and no."""
    return setting(option, path, reset=False, action="store_const", const=to, help=about)


TAGS = pairs("--tag", "tags")
LABELS = pairs("--label", "properties.labels")


def add_settings(made: Parser, settings: Sequence[Setting]) -> None:
    """As options of a `create`."""
    for each in settings:
        if "choices" in each.argument:
            add_choice(made, each.option, **each.argument)
        else:
            made.add_argument(each.option, **each.argument)


def add(made: Parser, settings: Sequence[Setting]) -> None:
    """As options of an `update`."""
    add_settings(made, settings)
    for each in settings:
        if each.is_map:
            about = "the others stay; may be given several times"
            made.add_argument(f"--remove-{each.name}", action="append", metavar="KEY", help=about)
    names = [each.name for each in settings if each.reset]
    if names:
        about = f"put it back to its default; may be given several times: {', '.join(names)}"
        add_choice(made, "--reset", choices=names, action="append", metavar="OPTION", help=about)


def given(options: argparse.Namespace, settings: Sequence[Setting]) -> Document:
    """What was said, in the form of the API."""
    document: Document = {}
    said: dict[str, str] = {}
    for each in settings:
        value = each.value(options)
        if value is None:
            continue
        if each.path in said:
            raise Refused(f"{said[each.path]} and {each.option} say different things")
        said[each.path] = each.option
        _put(document, each.path, value)
    return document


def changes(
    options: argparse.Namespace,
    settings: Sequence[Setting],
    also: Document | None = None,
    others: Sequence[str] = (),
) -> Document:
    """What was said as a JSON merge patch; refused when nothing was.

    `also` is what `others` say, options that are no settings.
    """
    patch = merged(given(options, settings), also or {})
    by_name = {each.name: each for each in settings}
    for name in options.reset or () if "reset" in options else ():
        place = by_name[name].emptied
        for each in settings:
            inside = each.path == place or each.path.startswith(f"{place}.")
            if inside and each.is_said(options):
                raise Refused(f"{each.option} and --reset {name} say different things")
        _put(patch, place, None)
    if not patch:
        names = ", ".join([*(each.option for each in settings), *others])
        raise Refused(f"nothing to change was said; what can be changed: {names}")
    return patch


def patched(api: Api, path: str, patch: Document) -> Document:
    """By PATCH. It replaces all tags: those that stay are read first, and a change in between is refused."""
    if "tags" not in patch:
        return api.patch(path, patch)
    tags: Document | None = patch["tags"]
    if tags is None:
        return api.patch(path, {**patch, "tags": {}})
    kept: Document = api.latest(path).get("tags") or {}
    wanted = _without_nulls(merged(kept, tags))
    return api.patch(path, {**patch, "tags": wanted}, etag=api.seen_etag(path))


def replaced(api: Api, path: str, patch: Document) -> Document:
    """By PUT, where REST has no PATCH: read, merged, and refused when it was changed in between."""
    wanted = _without_nulls(merged(api.latest(path), patch))
    return api.put(path, wanted, etag=api.seen_etag(path))


def merged(document: Document, patch: Document) -> Document:
    """Objects merge, everything else replaces; null stays null."""
    result = dict(document)
    for name, value in patch.items():
        old = result.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            result[name] = merged(old, value)
        else:
            result[name] = value
    return result


def _put(document: Document, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        document = document.setdefault(name, {})
    document[last] = value


def _without_nulls(document: Document) -> Document:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in document.items()
        if value is not None
    }


def _attribute(name: str) -> str:
    return name.replace("-", "_")
