"""One JSON line of a benchmark. Ratios are taken in each round, between sides that were measured one after the other.

A ratio of two medians compares rounds that were minutes apart; the median of the rounds' own ratios does not.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

SIDES = ("ours", "limit", "peer")
RATIO_DIGITS = 3


def compare(ours: Sequence[float], other: Sequence[float]) -> tuple[float, list[float]]:
    """The median of ours ÷ other over the rounds, and the least and the greatest of them."""
    ratios = [one / two for one, two in zip(ours, other, strict=True)]
    return (
        round(statistics.median(ratios), RATIO_DIGITS),
        [round(min(ratios), RATIO_DIGITS), round(max(ratios), RATIO_DIGITS)],
    )


def ratios(rounds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """`ratio` is to the limit, `ratio_to_peer` to the peer if there is one; each with its range."""
    fields: dict[str, Any] = {}
    fields["ratio"], fields["ratio_range"] = compare(rounds["ours"], rounds["limit"])
    if "peer" in rounds:
        fields["ratio_to_peer"], fields["ratio_to_peer_range"] = compare(
            rounds["ours"], rounds["peer"]
        )
    return fields


def summary(
    name: str,
    rounds: Mapping[str, Sequence[float]],
    *,
    digits: int | None,
    goal: Any,
    note: str,
    **more: Any,
) -> dict[str, Any]:
    """`rounds`: the value of each side in each round; `more`: further fields, printed as they are."""
    return {
        "name": name,
        **{side: median(rounds[side], digits) if side in rounds else None for side in SIDES},
        **ratios(rounds),
        "spread": {
            side: [round(min(values), digits), round(max(values), digits)]
            for side, values in rounds.items()
        },
        **more,
        "goal": goal,
        "note": note,
    }


def median(values: Sequence[float], digits: int | None) -> float:
    return round(statistics.median(values), digits)


def print_line(document: Mapping[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False), flush=True)
