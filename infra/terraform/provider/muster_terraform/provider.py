"""The configuration of the provider: where Muster is, and as whom it is reached."""

from dataclasses import dataclass, field
from typing import Any

from muster_terraform import diagnostics
from muster_terraform.api import DEFAULT_URL, Api, ApiError, surroundings
from muster_terraform.attributes import NUMBER, STRING, UNKNOWN, Attribute, State


def _option(name: str, about: str, kind: str = STRING, *, sensitive: bool = False) -> Attribute:
    return Attribute(name=name, kind=kind, path=None, about=about, sensitive=sensitive)


ATTRIBUTES = (
    _option("url", f"Of the API. Default: MUSTER_URL, else {DEFAULT_URL}."),
    _option(
        "token",
        "Default: MUSTER_TOKEN, or the content of the file MUSTER_TOKEN_FILE.",
        sensitive=True,
    ),
    _option(
        "ca_file", "PEM; the CA that signed the API's certificate. Default: those of the system."
    ),
    _option(
        "account",
        "Id, NAME or SERVER/NAME of the account of what names none. Default: MUSTER_ACCOUNT.",
    ),
    _option(
        "operation_timeout_seconds", "How long an operation is waited for. Default: 1800.", NUMBER
    ),
)
ABOUT = "Muster runs SQL jobs over fleets of PostgreSQL databases."
SQL = "providers/Microsoft.Sql"


@dataclass
class Provider:
    api: Api | None = None
    account: str | None = None  # an id
    stops: list[Any] = field(default_factory=list)

    def configure(self, config: State) -> list[Any]:
        """Nothing is asked of the API here but the id of an account that was given by name."""
        if unknown := [name for name, value in config.items() if value is UNKNOWN]:
            detail = "The provider needs it before it can plan; give it as a variable or in the environment."
            return [diagnostics.error("NotYetKnown", detail, [name]) for name in unknown]
        try:
            token = config["token"] or surroundings("MUSTER_TOKEN")
            if not token:
                detail = "Set MUSTER_TOKEN or MUSTER_TOKEN_FILE in the environment, or `token` of the provider."
                return [diagnostics.error("TokenMissing", detail, ["token"])]
            self.api = Api(
                url=config["url"] or surroundings("MUSTER_URL") or DEFAULT_URL,
                token=token,
                ca_file=config["ca_file"],
                operation_limit=float(config["operation_timeout_seconds"] or 1800),
            )
            wanted = config["account"] or surroundings("MUSTER_ACCOUNT")
            self.account = _account(self.api, wanted) if wanted else None
        except ApiError as refused:
            return diagnostics.of_api(refused, ATTRIBUTES)
        except OSError as failure:
            return [diagnostics.error("TokenFileUnreadable", str(failure), ["token"])]
        return []

    def stop(self) -> None:
        if self.api:
            self.api.stopped.set()


def _account(api: Api, wanted: str) -> str:
    if wanted.startswith("/"):
        return wanted.rstrip("/")
    server, _, name = wanted.rpartition("/")
    ids = []
    for subscription in api.all("/subscriptions"):
        for each in api.all(f"{subscription['id']}/{SQL}/servers"):
            if server and each["name"].lower() != server.lower():
                continue
            accounts = api.all(f"{each['id']}/jobAgents")
            ids += [one["id"] for one in accounts if one["name"].lower() == name.lower()]
    if len(ids) != 1:
        what = "There is no account" if not ids else f"There are {len(ids)} accounts"
        hint = "" if not ids else " Name its server too (SERVER/NAME), or give its id."
        raise ApiError(
            "AccountNotFound", f"{what} '{wanted}' that the token can see.{hint}", "account"
        )
    return str(ids[0])
