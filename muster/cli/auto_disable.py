"""`--auto-disable`: when the schedule of a job that keeps failing is disabled."""

import argparse
import re
from typing import Any

from muster.cli.output import moment
from muster.cli.updates import Setting, setting

LIMITS = ("failures", "days", "warningFailures", "warningDays")
POLICY = re.compile(r"(\d{1,5})/(\d{1,3})d?")


def add(one: argparse.ArgumentParser, default: str) -> None:
    each = of(default)
    one.add_argument(each.option, **each.argument)


def of(default: str) -> Setting:
    return setting(
        "--auto-disable",
        "properties.autoDisable",
        type=policy,
        metavar="N/DAYS",
        help="disable the schedule after N failures in a row and no success for DAYS, such as 30/7;"
        f" off: never; default: {default}",
    )


def describe(properties: dict[str, Any]) -> list[str]:
    """Why the schedule is disabled, or that it fails."""
    health = properties.get("health") or {}
    if reason := health.get("disabledReason"):
        return [reason]
    if health:
        count = health["failuresInARow"]
        return [f"failed {count} time{'s' * (count != 1)} in a row since {moment(health['since'])}"]
    return []


def policy(text: str) -> dict[str, int]:
    if text.lower() == "off":
        return {"failures": 0}
    match = POLICY.fullmatch(text)
    if match is None or match[1] == "0":
        raise argparse.ArgumentTypeError(f"'{text}' is neither N/DAYS, such as 30/7, nor off")
    return {"failures": int(match[1]), "days": int(match[2])}
