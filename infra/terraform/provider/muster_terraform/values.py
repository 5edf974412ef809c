"""Between configuration, plan, state and the API's document. Nothing here talks to anybody."""

import re
from typing import Any

from muster_terraform.attributes import UNKNOWN, Attribute, Document, Nested, State

MISSING: Any = object()


def state_of(attributes: tuple[Attribute, ...], document: Document) -> State:
    """What the API shows, in Terraform's form."""
    return {each.name: _shown(each, document) for each in attributes}


def _shown(attribute: Attribute, document: Document) -> Any:
    if attribute.write_only or attribute.path is None:
        return None
    value: Any = document
    for word in attribute.path:
        value = value.get(word) if isinstance(value, dict) else None
    if value is None or value == attribute.blank:
        return empty(attribute)
    value = attribute.read(value)
    match attribute.kind:
        case Nested(attributes, many=True):
            return [state_of(attributes, each) for each in value]
        case Nested(attributes):
            return state_of(attributes, value)
    return value


def empty(attribute: Attribute) -> Any:
    """What a state has where nothing was said."""
    many = isinstance(attribute.kind, Nested) and attribute.kind.many
    return [] if many else attribute.default


def planned(attributes: tuple[Attribute, ...], config: State, prior: State | None) -> State:
    """What will be there after apply."""
    plan = {each.name: _planned(each, config, prior) for each in attributes}
    if prior is not None and any(plan[each.name] != prior.get(each.name) for each in attributes):
        plan |= {
            each.name: UNKNOWN for each in attributes if each.only_computed and not each.settled
        }
    return plan


def _planned(attribute: Attribute, config: State, prior: State | None) -> Any:
    value = config.get(attribute.name)
    if attribute.write_only:
        return None
    if value is None:
        return _unsaid(attribute, prior)
    if value is UNKNOWN or not isinstance(attribute.kind, Nested):
        return value
    inner = attribute.kind.attributes
    if attribute.kind.many:
        return [each if each is UNKNOWN else planned(inner, each, None) for each in value]
    return planned(inner, value, None)


def _unsaid(attribute: Attribute, prior: State | None) -> Any:
    if attribute.computed and attribute.default is None:
        return UNKNOWN if prior is None else prior.get(attribute.name)
    return empty(attribute)


def replaced(attributes: tuple[Attribute, ...], prior: State, plan: State) -> list[str]:
    """Names of what can't be changed in place."""
    return [
        each.name for each in attributes if each.replace and prior[each.name] != plan[each.name]
    ]


def document_of(
    attributes: tuple[Attribute, ...], plan: State, config: State, prior: State | None
) -> Document:
    """What is sent: all that was said, and defaults; what the API alone decides is left out."""
    document: Document = {}
    for each in attributes:
        value = _sent(each, plan, config, prior)
        if value is None or value is UNKNOWN or each.path is None:
            continue
        place = document
        for word in each.path[:-1]:
            place = place.setdefault(word, {})
        place[each.path[-1]] = value
    return document


def _sent(attribute: Attribute, plan: State, config: State, prior: State | None) -> Any:
    name = attribute.name
    if attribute.write_only:
        is_new = prior is None or prior.get(attribute.version) != plan.get(attribute.version)
        return config.get(name) if is_new else None
    said: Any = config.get(name)
    value = said if attribute.computed and attribute.default is None else plan[name]
    if value is None or value is UNKNOWN:
        return None
    before = prior.get(name) if prior is not None else None
    match attribute.kind:
        case Nested(inner, many=True):
            pairs = zip(value, said, strict=True)
            return [document_of(inner, each, words, None) for each, words in pairs]
        case Nested(inner):
            return document_of(inner, value, said, before)
    return attribute.write(value)


def merged(plan: Any, actual: Any) -> Any:
    """The state after apply: as planned, completed by what was not known."""
    if plan is UNKNOWN:
        return actual
    if isinstance(plan, dict) and isinstance(actual, dict):
        return {name: merged(value, actual.get(name)) for name, value in plan.items()}
    if isinstance(plan, list) and isinstance(actual, list) and len(plan) == len(actual):
        return [merged(*pair) for pair in zip(plan, actual, strict=True)]
    return plan


def refreshed(
    attributes: tuple[Attribute, ...], prior: State, seen: State | None, now: State
) -> State:
    """The state as it is now. A value stays as it was written while the API shows it as after the apply."""
    before = {} if seen is None else seen
    state: State = {}
    for each in attributes:
        name = each.name
        if each.path is None:
            state[name] = prior.get(name)
        elif each.only_computed:
            state[name] = now[name]
        else:
            seen_value = before.get(name) if seen is not None else MISSING
            state[name] = _refreshed(each, prior.get(name), seen_value, now[name])
    return state


def _refreshed(attribute: Attribute, prior: Any, seen: Any, now: Any) -> Any:
    if seen is not MISSING and seen == now:
        return prior
    match attribute.kind:
        case Nested(inner, many=True) if _lists(prior, now):
            known = _lists(seen, now) and len(seen) == len(now)
            pairs = zip(prior, seen if known else [None] * len(now), now, strict=False)
            if len(prior) == len(now):
                return [refreshed(inner, *each) for each in pairs]
        case Nested(inner) if isinstance(prior, dict) and isinstance(now, dict):
            return refreshed(inner, prior, seen if isinstance(seen, dict) else None, now)
    return now


def _lists(*values: Any) -> bool:
    return all(isinstance(each, list) for each in values)


def attribute_path(attributes: tuple[Attribute, ...], target: str) -> list[str | int]:
    """Where the API's `properties.members[0].type` is in the configuration; empty when nowhere."""
    words = [word for word in re.split(r"[.\[\]]+", target) if word]
    for each in attributes:
        path = each.path or (each.name,)
        if tuple(words[: len(path)]) != path:
            continue
        rest = words[len(path) :]
        steps: list[str | int] = [each.name]
        if rest and rest[0].isdigit():
            steps.append(int(rest.pop(0)))
        if rest and isinstance(each.kind, Nested):
            steps += attribute_path(each.kind.attributes, ".".join(rest))
        return steps
    return []
