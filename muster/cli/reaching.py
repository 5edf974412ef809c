"""How the API is reached: its address, the certificate authority of a local `muster up --tls`, and what to do otherwise."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from muster.core.places import default_data_dir
from muster.core.settings import surroundings

LOCAL = {"127.0.0.1", "::1", "localhost"}
ELSEWHERE = "Another address is given with --url or MUSTER_URL, or kept by muster login"


def wrong_address(url: str) -> str | None:
    """What is wrong with the text itself; None when nothing is."""
    scheme, separator, rest = url.partition("://")
    if not separator or not scheme:
        return f"'{url}' has no scheme: write http://{rest or url.lstrip('/')}, or https:// for an API with TLS"
    if scheme.lower() not in {"http", "https"}:
        return f"'{url}' is no address of the API: it begins with http:// or https://"
    try:
        parts = urlsplit(url)
        named = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        named = None
    return None if named else f"'{url}' is no address such as http://127.0.0.1:8080"


def no_answer(url: str, error: Exception) -> str:
    """Why nothing came back from there, and what to do."""
    causes = _chain(error)
    text = (str(error) or type(error).__name__).rstrip(".")
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in causes):
        return (
            f"the certificate of {url} is not signed by an authority that is known here: {text}. "
            "SSL_CERT_FILE=FILE names one; `muster up --tls` prints where its own is"
        )
    if any(isinstance(each, ssl.SSLError) for each in causes) and "WRONG_VERSION" in text:
        plain = url.replace("https://", "http://", 1)
        return f"{url} does not speak TLS; try --url {plain}"
    if url.startswith("http://") and type(error).__name__ in {"RemoteProtocolError", "ReadError"}:
        secure = url.replace("http://", "https://", 1)
        return f"{url} ended the connection: {text}. Where it speaks TLS: --url {secure}"
    if is_local(url):
        return f"{url} does not answer: {text}. `muster up` starts Muster here. {ELSEWHERE}"
    return f"{url} does not answer: {text}. Is the API up, and the address right? {ELSEWHERE}"


def is_local(url: str) -> bool:
    return urlsplit(url).hostname in LOCAL


def local_authority(url: str) -> Path | None:
    """The CA of the `muster up --tls` of this user, or of the one whose token is used."""
    if not (url.startswith("https://") and is_local(url)):
        return None
    folders = [default_data_dir()]
    token = surroundings().get("MUSTER_TOKEN_FILE")
    if token:
        folders.insert(0, Path(token).absolute().parents[1])
    files = [folder / "tls" / "ca.pem" for folder in folders]
    return next((file for file in files if is_readable(file)), None)


def is_readable(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _chain(error: BaseException | None) -> list[BaseException]:
    errors: list[BaseException] = []
    while error is not None and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors
