"""The order in which the targets of a step start."""

import re
from collections.abc import Iterable
from hashlib import sha256

from engine.targets.resolution import Target

RANDOM = re.compile(r"random\((\d{1,18})\)")


def order(targets: Iterable[Target], by: str | None = None) -> list[Target]:
    """By server, database and schema, so that each resolution numbers its targets alike.

    `by`: random(seed), the same order for the same seed and targets; or a label, whose values are compared as
    numbers if they are numbers. Targets without the label come last.
    """
    in_order = sorted(targets, key=lambda target: target.key)
    if by is None:
        return in_order
    if match := RANDOM.fullmatch(by):
        return sorted(in_order, key=lambda target: _random(match[1], target))
    return sorted(in_order, key=lambda target: _by_label(target.labels.get(by)))


def _random(seed: str, target: Target) -> bytes:
    return sha256("\0".join((seed, *target.key)).encode()).digest()


def _by_label(value: str | None) -> tuple[int, float, str]:
    if value is None:
        return 2, 0.0, ""
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value
