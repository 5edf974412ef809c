"""An API that can't be reached: the message says what to do. Real sockets, since TLS fails in its own ways."""

import socket
import ssl
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.cli import client
from muster.cli import main as cli
from muster.roles.authority import Authority

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close\r\n\r\n{"value":[]}'


@contextmanager
def listening(context: ssl.SSLContext | None = None):
    """One listener on loopback that answers every request with an empty list."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    try:
                        stream = context.wrap_socket(peer, server_side=True) if context else peer
                        if stream.recv(65_536):
                            stream.sendall(ANSWER)
                        stream.close()
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.fixture
def tls_listener(tmp_path):
    """A listener with TLS by a local CA, in a data directory as `muster up --tls` makes it."""

    def serve(folder: Path):
        made = Authority(folder / "tls")
        made.ensure("127.0.0.1")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(made.certificate, made.key)
        return listening(context)

    return serve


@pytest.fixture(autouse=True)
def a_token(monkeypatch):
    monkeypatch.setenv("MUSTER_TOKEN", "x")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def refused(capsys, url: str) -> str:
    assert cli.main(["server", "list", "--url", url]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("url", ["localhost:8080", "127.0.0.1:8080", "muster.example"])
def test_an_address_without_a_scheme_is_told_with_one(capsys, url):
    assert f"write http://{url}" in refused(capsys, url)


@pytest.mark.parametrize("url", ["ftp://h", "http://", "http://h:99999", "://h"])
def test_an_address_that_is_none_is_refused(capsys, url):
    assert "http://" in refused(capsys, url)


def test_an_api_that_is_down_is_told_with_what_starts_it(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    err = refused(capsys, f"http://127.0.0.1:{port}")

    assert "does not answer" in err and "`muster up`" in err and "--url or MUSTER_URL" in err


def test_https_on_http_is_told_with_the_right_address(capsys):
    with listening() as port:
        err = refused(capsys, f"https://127.0.0.1:{port}")

    assert err == f"muster: https://127.0.0.1:{port} does not speak TLS; try --url http://127.0.0.1:{port}\n"  # fmt: skip


def test_http_on_https_is_told_with_the_right_address(capsys, tls_listener, tmp_path):
    with tls_listener(tmp_path) as port:
        err = refused(capsys, f"http://127.0.0.1:{port}")

    assert f"Where it speaks TLS: --url https://127.0.0.1:{port}" in err


def test_an_unknown_authority_is_told_with_what_names_one(capsys, tls_listener, tmp_path):
    with tls_listener(tmp_path / "elsewhere") as port:
        err = refused(capsys, f"https://127.0.0.1:{port}")

    assert "not signed by an authority that is known here" in err and "SSL_CERT_FILE" in err


def test_the_authority_of_the_local_up_is_found(capsys, tls_listener, tmp_path):
    with tls_listener(tmp_path / "xdg" / "muster") as port:
        assert cli.main(["server", "list", "--url", f"https://127.0.0.1:{port}"]) == 0


def test_the_authority_is_found_beside_the_token(monkeypatch, tls_listener, tmp_path):
    token = tmp_path / "d" / "secrets" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("x")
    monkeypatch.delenv("MUSTER_TOKEN")
    monkeypatch.setenv("MUSTER_TOKEN_FILE", str(token))

    with tls_listener(tmp_path / "d") as port:
        assert cli.main(["server", "list", "--url", f"https://127.0.0.1:{port}"]) == 0


def test_the_local_authority_is_trusted_for_this_machine_only(tls_listener, tmp_path):
    with tls_listener(tmp_path / "xdg" / "muster"):
        assert client.reaching.local_authority("https://127.0.0.1:1") is not None
        assert client.reaching.local_authority("https://far.example") is None
        assert client.reaching.local_authority("http://127.0.0.1:1") is None
