"""How much a control database may answer: what is built of it costs time and memory that all accounts share."""

import re

import msgspec

MOST_CHARACTERS = 24 * 1024 * 1024
MOST_CONTAINERS = 200_000  # objects and arrays; the largest target group has 10 000 members
MOST_VALUES = 1_500_000  # cells of the results of one attempt

STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"')


def check_answer(text: str) -> None:
    """Before it is decoded. ValidationError: no function of Muster answers with so much."""
    if len(text) > MOST_CHARACTERS:
        raise msgspec.ValidationError(f"an answer of {len(text)} characters")
    if _is_large(text) and _is_large(STRINGS.sub("", text)):  # a script may have many brackets
        raise msgspec.ValidationError("an answer of too many values")


def _is_large(text: str) -> bool:
    containers = text.count("[") + text.count("{")
    return containers > MOST_CONTAINERS or text.count(",") > MOST_VALUES
