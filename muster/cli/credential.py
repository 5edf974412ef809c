"""`muster credential …`: secrets for the control database, sealed where they are typed."""

import argparse
import getpass
import sys
from typing import TYPE_CHECKING
from uuid import UUID

from muster.cli import client
from muster.core.sealing import belongs_to, seal
from muster.core.settings import Secret

if TYPE_CHECKING:
    import httpx


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    credential = commands.add_parser("credential", help="look after credentials")
    verbs = credential.add_subparsers(dest="verb", required=True, metavar="VERB")
    about = "seal a password for jobs.sp_add_credential; read from the terminal or from stdin"
    one = verbs.add_parser("seal", help=about)
    one.add_argument("credential", metavar="NAME", help="of the credential that it is for")
    one.add_argument("--account", required=True, help="name or resource id of the account")
    client.add_url(one)


def run(options: argparse.Namespace) -> int:
    def sealing(api: "httpx.Client") -> int:
        found = client.accounts(api, options.account)
        if len(found) > 1:
            raise client.Refused(f"which one? {', '.join(found)}", 1)
        key = client.understood(api.post(f"{found[0]}/sealingKey"))
        context = belongs_to(UUID(key["accountUid"]), UUID(key["identity"]), options.credential)
        print(seal(key["publicKey"], _secret(), context))
        return 0

    return client.calling(options, sealing)


def _secret() -> Secret:
    text = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.read()
    plain = text.rstrip("\r\n")
    if not plain:
        raise client.Refused("an empty password is not sealed", 1)
    return Secret(plain)
