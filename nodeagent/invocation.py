"""One command in progress: its arguments, its login, and the services that it uses."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from muster.core.connect import Connector
from muster.core.errors import Conflict, Internal, InvalidRequest
from muster.core.secrets import Keyring
from muster.core.settings import Secret
from nodeagent.answer_limits import check_answer
from nodeagent.client import CLIENT_KEY, PASSWORD
from nodeagent.command_table import Spec
from nodeagent.control_db import Access, ControlDatabases
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.protocol import Door, Login, Roles
from nodeagent.wire import Request, digest


@dataclass(frozen=True)
class Services:
    databases: ControlDatabases
    connector: Connector
    keyring: Keyring
    expected_schema: ExpectedSchema = field(default_factory=ExpectedSchema)


@dataclass(frozen=True, kw_only=True)
class Invocation:
    services: Services
    account_uid: UUID
    command_id: UUID
    spec: Spec
    args: Any  # of spec.args
    size: int = 0  # bytes of the arguments
    access: Access
    digest: str
    caller: str
    door: Door
    roles: Roles = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", Roles.of(self.account_uid))

    def secret(self, name: str) -> Secret:
        return _open(self.services.keyring, getattr(self.args, name), f"{self.account_uid}/{name}")

    def check(self, answer: str | None) -> None:
        """Refuses what the control database keeps or says unless it is a result of the command."""
        try:
            check_answer(answer or "null")
            msgspec.json.decode(answer or "null", type=self.spec.result)
        except (msgspec.ValidationError, RecursionError) as error:
            raise Conflict(
                "The control database does not hold what Muster installed there.",
                code="ControlSchemaDamaged",
                context=str(error),
            ) from None


def begun(
    services: Services, account_uid: UUID, command_id: UUID, spec: Spec, request: Request
) -> Invocation:
    """Arguments are decoded and the login is opened; what does not fit is refused here."""
    try:
        args = msgspec.json.decode(request.args, type=spec.args)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{spec.name}: {error}.", target="args") from None
    return Invocation(
        services=services,
        account_uid=account_uid,
        command_id=command_id,
        spec=spec,
        args=args,
        size=len(request.args),
        access=_access(services.keyring, account_uid, request.login),
        digest=digest(spec, args),
        caller=request.caller,
        door=request.door,
    )


def _access(keyring: Keyring, account_uid: UUID, login: Login) -> Access:
    endpoint = login.endpoint
    if login.client_key:
        key = _open(keyring, login.client_key, f"{account_uid}/{CLIENT_KEY}")
        endpoint = msgspec.structs.replace(endpoint, client_key=key.reveal())
    password = _open(keyring, login.password, f"{account_uid}/{PASSWORD}")
    return Access(endpoint, login.database, login.user, password)


def _open(keyring: Keyring, sealed: str, context: str) -> Secret:
    """A secret of another account or field is the caller's mistake, not ours."""
    try:
        return keyring.open(sealed, context)
    except (Internal, ValueError):
        raise InvalidRequest("A sealed value does not belong here.", code="SealedValue") from None
