"""How the command line speaks to the API: address and token from the environment, errors in one form."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muster.core.settings import surroundings

if TYPE_CHECKING:
    import httpx

VERSION = {"api-version": "2025-01-01"}
EXITS = {403: 7, 404: 6}


class Refused(Exception):  # noqa: N818 - an answer, told as it is
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def add_url(command: argparse.ArgumentParser) -> None:
    command.add_argument("--url", help="of the API; default: MUSTER_URL or http://127.0.0.1:8080")


def calling(options: argparse.Namespace, what: "Callable[[httpx.Client], int]") -> int:
    """The exit code of `what`; whatever stands in its way is one line on stderr."""
    import httpx  # late: `muster engine` parses the same command line and needs none of it

    environ = surroundings()
    url = options.url or environ.get("MUSTER_URL") or "http://127.0.0.1:8080"
    token = environ.get("MUSTER_TOKEN")
    if not token:
        return _told("set MUSTER_TOKEN to a token of the API", 1)
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=url, headers=headers, params=VERSION, timeout=30) as api:
            return what(api)
    except Refused as refused:
        return _told(str(refused), refused.code)
    except httpx.TransportError as error:
        return _told(f"{url} does not answer: {error}", 1)


def understood(answer: "httpx.Response") -> dict[str, Any]:
    if answer.is_error:
        error = answer.json()["error"]
        raise Refused(f"{error['code']}: {error['message']}", EXITS.get(answer.status_code, 1))
    shown: dict[str, Any] = answer.json()
    return shown


def accounts(api: "httpx.Client", name: str) -> list[str]:
    """An id as it is; for a name, every account of that name that the token can see."""
    if name.startswith("/"):
        return [name]
    found: list[str] = []
    for subscription in understood(api.get("/subscriptions"))["value"]:
        servers = understood(api.get(f"{subscription['id']}/providers/Microsoft.Sql/servers"))
        for server in servers["value"]:
            listed = understood(api.get(f"{server['id']}/jobAgents"))["value"]
            found += [each["id"] for each in listed if each["name"].lower() == name.lower()]
    if not found:
        raise Refused(f"there is no account '{name}'", 6)
    return found


def _told(message: str, code: int) -> int:
    print(f"muster: {message}", file=sys.stderr)
    return code
