"""Label selectors: which labels a target must have, in the notation of Kubernetes.

    selector = parse("tier=gold,region in (eu,us),!legacy")
    selector.matches({"tier": "gold", "region": "eu"})    # True
    str(selector)                                         # the same selector again

A comma means "and". `jobs_internal.selector_error` checks the same notation in SQL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muster.core.errors import InvalidRequest

MAX_BYTES = 2048
MAX_REQUIREMENTS = 32
EXAMPLE = "tier=gold,region in (eu,us),!legacy"
FORMS = "key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)"
KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?"
VALUE = r"""[^ ,()=!"'\u0001-\u001f\u007f-\u009f]+"""
# A requirement, with the comma after it.
REQUIREMENT = re.compile(
    rf" *(?:!\ *(?P<absent>{KEY})"
    rf"|(?P<key>{KEY})(?:\ *(?P<comparison>==|=|!=)\ *(?P<value>{VALUE})"
    rf"|\ +(?P<set>in|notin)\ *\((?P<values>\ *{VALUE}\ *(?:,\ *{VALUE}\ *)*)\))?)"
    r"\ *(?P<more>,|\Z)"
)


@dataclass(frozen=True)
class Requirement:
    """One condition: on a value among `values` or, without values, on the label itself."""

    key: str
    holds: bool = True  # False: !key, !=, notin. A target without the label satisfies it.
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels if not self.values else labels.get(self.key) in self.values
        return has is self.holds

    def __str__(self) -> str:
        match self.values:
            case ():
                return self.key if self.holds else f"!{self.key}"
            case (value,):
                return f"{self.key}{'=' if self.holds else '!='}{value}"
            case values:
                return f"{self.key} {'in' if self.holds else 'notin'} ({','.join(values)})"


@dataclass(frozen=True)
class LabelSelector:
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(each.matches(labels) for each in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse(text: str) -> LabelSelector:
    """InvalidRequest with the position of the requirement that can't be read, and an example."""
    if not 1 <= len(text.encode()) <= MAX_BYTES:
        raise InvalidRequest(f"A label selector has 1 to {MAX_BYTES} bytes, for example {EXAMPLE}.")
    requirements: list[Requirement] = []
    position, more = 0, True
    while more:
        match = REQUIREMENT.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip(" "))
            raise InvalidRequest(
                f"Label selector, position {start + 1}: expected {FORMS}, joined by commas; for example {EXAMPLE}."
            )
        requirements.append(_requirement(match))
        if len(requirements) > MAX_REQUIREMENTS:
            raise InvalidRequest(f"A label selector has at most {MAX_REQUIREMENTS} requirements.")
        position, more = match.end(), match["more"] == ","
    return LabelSelector(tuple(requirements))


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent"], holds=False)
    if match["set"]:
        values = tuple(value.strip(" ") for value in match["values"].split(","))
        return Requirement(match["key"], match["set"] == "in", values)
    if match["comparison"]:
        return Requirement(match["key"], match["comparison"] != "!=", (match["value"],))
    return Requirement(match["key"])
