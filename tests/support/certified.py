"""A PostgreSQL with TLS that lets its login in with a client certificate only.

with demanding(authority) as server:         a real one; not all installations speak TLS: see `BINARIES`
    pair = a_pair(authority)                 certificate and key that it accepts

LOGIN needs a certificate beside its password, which is the administrator's. BY_NAME needs no password.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import trustme

from tests.support.postgres import HOST, Postgres, owner, running

LOGIN, BY_NAME = "certified", "by_name"
# Those that tests otherwise use come in a wheel and were built without TLS.
BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
HBA = f"""
hostssl all {LOGIN} {HOST}/32 scram-sha-256 clientcert=verify-full
hostssl all {BY_NAME} {HOST}/32 cert
host all all {HOST}/32 scram-sha-256
"""


class Pair(NamedTuple):
    certificate: str
    key: str


def a_pair(authority: trustme.CA, name: str = LOGIN) -> Pair:
    made = authority.issue_cert("client.example.com", common_name=name)
    chain = b"".join(blob.bytes() for blob in made.cert_chain_pems).decode()
    return Pair(chain, made.private_key_pem.bytes().decode())


def authority_of(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


@contextlib.contextmanager
def demanding(authority: trustme.CA) -> Iterator[Postgres]:
    home = Path(tempfile.mkdtemp(prefix="muster-tls-"))
    pair = authority.issue_cert(HOST)
    files = {
        "ssl_cert_file": b"".join(blob.bytes() for blob in pair.cert_chain_pems),
        "ssl_key_file": pair.private_key_pem.bytes(),
        "ssl_ca_file": authority.cert_pem.bytes(),
        "hba_file": HBA.encode(),
    }
    try:
        for name, content in files.items():
            (home / name).write_bytes(content)
            (home / name).chmod(0o600)
        for path in (home, *home.iterdir()):
            if who := owner():
                shutil.chown(path, **who)
        given = {name: str(home / name) for name in files}
        with running(migrated=False, binaries=BINARIES, ssl="on", **given) as server:
            asyncio.run(_add_logins(server))
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _add_logins(server: Postgres) -> None:
    connection = await asyncpg.connect(server.url("postgres", server.root))
    password = server.administrator.password
    for name in (LOGIN, BY_NAME):
        await connection.execute(f"create role {name} login password '{password}'")
    await connection.close()
