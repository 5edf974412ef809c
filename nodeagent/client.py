"""The client of node agents: finds a live one, seals, signs, and decodes errors."""

import ssl
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

import httpx
import msgspec

from muster.core.clock import Clock
from muster.core.connect import Endpoint
from muster.core.db import Database
from muster.core.errors import Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from muster.core.worker_thread import compute
from nodeagent import registry
from nodeagent.command_table import SPECS, Spec
from nodeagent.protocol import Door, Login
from nodeagent.tokens import Tokens
from nodeagent.wire import CommandError, Request

PASSWORD = "login.password"  # noqa: S105 - the name of a field
CLIENT_KEY = "login.clientKey"
GRACE = 2.0  # seconds beyond the command's own limit, so that the agent's answer comes first
KEPT = 1.0  # seconds that addresses of agents are remembered


def seal(keyring: Keyring, account_uid: UUID, field: str, secret: Secret) -> str:
    """How a secret travels: only a holder of the envelope key opens it, for this account and field."""
    return keyring.seal(secret.reveal(), f"{account_uid}/{field}")


def login(
    keyring: Keyring,
    account_uid: UUID,
    *,
    server: str,
    endpoint: Endpoint,
    database: str,
    user: str,
    password: Secret,
) -> Login:
    key = endpoint.client_key
    return Login(
        server=server,
        endpoint=msgspec.structs.replace(endpoint, client_key=None),
        database=database,
        user=user,
        password=seal(keyring, account_uid, PASSWORD, password),
        client_key=seal(keyring, account_uid, CLIENT_KEY, Secret(key)) if key else None,
    )


async def route(db: Database, server_key: str, settings: Settings) -> str:
    """The address of a live agent beside the server; NodeAgentUnavailable when there is none."""
    return (await registry.routes(db, server_key, settings))[0]


class AgentClient:
    def __init__(
        self,
        settings: Settings,
        db: Database,
        keyring: Keyring,
        *,
        http: httpx.AsyncClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._db = db
        self._clock = clock or Clock()
        self._tokens = Tokens(keyring, self._clock)
        self._known: dict[str, tuple[float, list[str]]] = {}  # by server: since when, which agents
        self._http = http or httpx.AsyncClient(verify=tls(settings), trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def run(
        self,
        account_uid: UUID,
        command_id: UUID,
        command: msgspec.Struct,
        login: Login,
        *,
        caller: str = "muster",
        door: Door = Door.FSM,
        size: int = 0,
    ) -> Any:
        """The result struct that COMMANDS names. Unavailable: ask again with the same id.

        `size`: about how many bytes the command has; a large one is encoded in the worker thread.
        """
        spec = SPECS[type(command)]
        body = await compute(_encoded, spec, command, login, caller, door, size=size)
        token = self._tokens.sign(account_uid, command_id, spec.cls, body)
        path = f"/v1/accounts/{account_uid}/commands/{command_id}"
        tried: set[str] = set()
        for refresh in (False, True):
            for url in await self._routes(login.server, refresh=refresh):
                if url in tried:
                    continue
                answer = await self._post(url.rstrip("/") + path, spec, token, body)
                if answer is not None:
                    return _understood(answer, spec)
                tried.add(url)
        raise _away("No node agent can be reached")

    async def _routes(self, server: str, *, refresh: bool) -> list[str]:
        """Cached for a moment; read again when none of them can be reached."""
        since, urls = self._known.get(server, (0.0, []))
        if refresh or not urls or self._clock.monotonic() - since > KEPT:
            urls = await registry.routes(self._db, server, self._settings)
            self._known[server] = (self._clock.monotonic(), urls)
        return urls

    async def _post(self, url: str, spec: Spec, token: str, body: bytes) -> httpx.Response | None:
        """None: nothing was sent, another agent may do."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        limit = httpx.Timeout(spec.timeout.total_seconds() + GRACE, connect=GRACE)
        try:
            return await self._http.post(url, content=body, headers=headers, timeout=limit)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.TimeoutException:
            raise _away("The node agent did not answer in time", "NodeAgentTimeout") from None
        except httpx.TransportError as error:
            raise _away(
                "The node agent closed the connection", context=type(error).__name__
            ) from None


def _encoded(spec: Spec, command: msgspec.Struct, login: Login, caller: str, door: Door) -> bytes:
    args = msgspec.Raw(msgspec.json.encode(command))
    request = Request(command=spec.name, args=args, login=login, caller=caller, door=door)
    return msgspec.json.encode(request)


def tls(settings: Settings) -> ssl.SSLContext | bool:
    """Both ends show a certificate of our own authority; without one, the system's trust counts."""
    if not (
        settings.node_agent_tls_cert and settings.node_agent_tls_key and settings.node_agent_tls_ca
    ):
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(settings.node_agent_tls_ca)
    context.load_cert_chain(settings.node_agent_tls_cert, settings.node_agent_tls_key)
    return context


def _understood(answer: httpx.Response, spec: Spec) -> msgspec.Struct:
    try:
        if answer.status_code == httpx.codes.OK:
            # What a target returned may have more digits than a float.
            return msgspec.json.Decoder(spec.result, float_hook=Decimal).decode(answer.content)
        error = msgspec.json.decode(answer.content, type=CommandError)
    except msgspec.DecodeError:
        raise _away(
            "The answer is not from a node agent", context=str(answer.status_code)
        ) from None
    raise error.fault()


def _away(why: str, code: str = "NodeAgentUnavailable", context: str = "") -> Unavailable:
    return Unavailable(f"{why}.", code=code, context=context, retry_after=1)
