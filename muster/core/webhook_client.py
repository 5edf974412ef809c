"""Sends one delivery to a receiver: one connection to a checked address, one request, a bounded answer.

The same rules as for targets decide which address may be reached (connect.py): the name is resolved for each
delivery, every answer is checked, and the connection goes to a checked address. TLS verifies the certificate.
Redirects are not followed; the body of an answer is not read beyond a limit.
"""

import asyncio
import contextlib
import re
import ssl

from muster.core.connect import Connector
from muster.core.connect_errors import printable
from muster.core.egress import Address
from muster.core.endpoint import Endpoint
from muster.core.errors import Fault
from muster.core.webhook import Receiver, request

TIMEOUT = 10.0  # seconds, for everything
LARGEST_HEAD = 16 * 1024  # bytes of status line and headers
LARGEST_BODY = 64 * 1024  # bytes that are read and thrown away, so that the receiver can finish
BODY_TIMEOUT = 1.0  # seconds for that; the status counts
STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)[ \r]")
INTERIM_ANSWERS = 5
REDIRECTS = range(300, 400)


class DeliveryError(Exception):
    """No answer; the text is for users."""


class WebhookClient:
    def __init__(self, connector: Connector, *, timeout: float = TIMEOUT) -> None:
        self._connector = connector
        self._timeout = timeout
        self._context: ssl.SSLContext | None = None

    async def post(self, to: Receiver, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer. Raises DeliveryError when there is none."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._post(to, request(to, headers, body))
        except TimeoutError:
            raise DeliveryError(f"no answer within {self._timeout:g} s") from None
        except Fault as fault:
            raise DeliveryError(fault.message) from None
        except ssl.SSLError as error:
            reason = printable(str(error.reason or error))
            raise DeliveryError(f"TLS with {to.host} failed: {reason}") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise DeliveryError(f"{to.host} does not answer ({type(error).__name__})") from None

    async def _post(self, to: Receiver, sent: bytes) -> int:
        endpoint = Endpoint(host=to.host, port=to.port)
        candidates = await self._connector.candidates(endpoint, self._timeout)
        reader, writer = await self._connect(to, [address for _, address in candidates])
        try:
            writer.write(sent)
            await writer.drain()
            status = await _status(reader)
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(BODY_TIMEOUT):
                    left = LARGEST_BODY
                    while left > 0 and (chunk := await reader.read(left)):
                        left -= len(chunk)
            return status
        finally:
            writer.transport.abort()

    async def _connect(
        self, to: Receiver, addresses: list[Address]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the first address that answers."""
        tls = await self._tls() if to.tls else None
        name = to.host if to.tls else None
        for left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            try:
                return await asyncio.open_connection(
                    str(address), to.port, limit=LARGEST_HEAD, ssl=tls, server_hostname=name
                )
            except OSError:
                if not left:
                    raise
        raise DeliveryError(f"{to.host} has no address")

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            context = await asyncio.to_thread(ssl.create_default_context)  # with SSL_CERT_FILE
            if self._connector.authority:
                context.load_verify_locations(cadata=self._connector.authority)
            self._context = context
        return self._context


async def _status(reader: asyncio.StreamReader) -> int:
    for _ in range(INTERIM_ANSWERS):
        head = await reader.readuntil(b"\r\n\r\n")
        match = STATUS.match(head)
        if match is None:
            raise DeliveryError("the answer is no HTTP/1.1")
        status = int(match[1])
        if status >= 200:
            return status
    raise DeliveryError("only interim answers (1xx) came")


def refusal(status: int) -> str | None:
    """Why the answer means that the event was not accepted; None for 2xx."""
    if 200 <= status < 300:
        return None
    if status in REDIRECTS:
        return f"the receiver answered {status}; redirects are not followed"
    return f"the receiver answered {status}"
