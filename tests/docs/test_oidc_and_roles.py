"""docs/how-to/oidc-and-roles.md with an issuer of its own on the loopback: who may do what, and who may not."""

import http.server
import json
import re
import threading
from collections.abc import Iterator

import pytest

from muster.cli.exits import Exit
from tests.support.oidc import Issuer
from tests.support.pages import page, text_of
from tests.support.shell import shell
from tests.support.stack import muster_up
from workflows.roles import ROLES

PAGE = "docs/how-to/oidc-and-roles.md"


@pytest.fixture
def issuer() -> Iterator[tuple[Issuer, str]]:
    """The keys and discovery document at an address of the loopback."""
    keys = Issuer()

    class Served(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}"
            discovery = {"issuer": url, "jwks_uri": f"{url}/keys"}
            answers = {"/.well-known/openid-configuration": discovery, "/keys": keys.jwks()}
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield keys, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_roles_decide_what_callers_of_the_issuer_may_do(tmp_path, issuer):
    keys, url = issuer
    with page(PAGE) as told, shell(tmp_path) as settings:
        chosen = told.take("Settings").with_({"https://login.example.com/realms/ops": url})
        settings.block(chosen)
        lines = settings.run("env | grep ^MUSTER_").output.splitlines()
        environment = dict(line.split("=", 1) for line in lines)
        tenant = environment["MUSTER_TENANT_ID"]
        for who, groups in {"ana": (), "ben": (), "dora": ("dba",), "eve": ()}.items():
            token = keys.token(who, iss=url, aud="muster", tid=tenant, groups=[*groups])
            (tmp_path / f"{who}.jwt").write_text(token)

        with muster_up(tmp_path, **environment) as muster:
            with shell(tmp_path, MUSTER_URL=muster.url) as bash:
                bash.block(told.take("The first login").text)
                bash.block(told.take("Give a role to others").text)
                seen_by_ben = bash.block(told.take("Give a role to others").text)
                assert "prod" in "".join(seen_by_ben.values())
                group = "/subscriptions/main/resourceGroups/prod"
                assert may(muster, tmp_path, "ben", "GET", group) == 200
                assert may(muster, tmp_path, "ben", "PUT", group) == 403
                assert may(muster, tmp_path, "dora", "PUT", group) == 200
                assert may(muster, tmp_path, "dora", "PUT", "/subscriptions/main") == 403
                assert may(muster, tmp_path, "eve", "GET", group) == 403

                *_, listed, _ = bash.block(told.take("Service tokens").text).values()
                assert "prod" in listed
                secret = tmp_path / "pipeline.token"
                assert secret.stat().st_mode & 0o777 == 0o600
                pipeline = secret.read_text().strip()
                refused = bash.run(
                    f"MUSTER_TOKEN={pipeline} muster resource-group list --subscription main"
                )
                assert (
                    refused.code == Exit.DENIED and "InvalidAuthenticationToken" in refused.output
                )


def may(muster, folder, who, method, path) -> int:
    headers = {"Authorization": f"Bearer {(folder / f'{who}.jwt').read_text()}"}
    body = {"json": {"location": "local"}} if method == "PUT" else {}
    return muster.client.request(method, path, headers=headers, **body).status_code


def test_the_page_has_the_roles_that_there_are():
    rows = re.findall(r"^\| ([A-Z][\w ]+) \| `([0-9a-f-]{36})` \|", text_of(PAGE), re.MULTILINE)

    assert sorted(rows) == sorted((role.name, role.id) for role in ROLES.values())
