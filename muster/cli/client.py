"""The client of the REST API, with errors in one form; contexts.py says where it is."""

import argparse
import contextlib
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from muster.cli import output, reaching
from muster.cli.exits import BY_STATUS, Exit

if TYPE_CHECKING:
    import httpx

    from muster.cli.contexts import Place

VERSION = {"api-version": "2025-01-01"}
PATIENCE = 30.0  # seconds for an API that was there and is away
LONGEST_ANSWER = 60.0  # seconds; resolving asks every server of a group
LONGEST_FILE = 180.0  # seconds until a file begins, and between two parts of it
BUSY = {429, 503}
BAD_TOKENS = ("InvalidAuthenticationToken", "ExpiredAuthenticationToken")
OVER = "--replace writes over it"
INSTEAD = {  # collection in a path → what a create that finds it there already is advised to
    "subscriptions": "muster subscription update changes it",
    "resourceGroups": "muster resource-group update changes it",
    "servers": f"muster server update changes it, {OVER}",
    "databases": "muster database update changes it",
    "elasticPools": "muster pool update changes it",
    "privateEndpoints": "muster private-endpoint delete removes it",
    "locks": "muster lock update changes it",
    "jobAgents": "muster account update changes it",
    "jobs": f"muster job update changes it, {OVER}",
    "steps": "muster step update changes it",
    "targetGroups": f"muster group add and group remove change its members, {OVER}",
    "credentials": "muster credential update changes it",
    "webhooks": "muster webhook update changes it",
}
OURS = {  # of the API, which speaks to REST and psql → of this command line
    "until jobs.sp_resume()": "until muster account resume, or jobs.sp_resume() in psql",
    "readOnly must be false": "use --write",
    "the server does not offer TLS": "the server does not offer TLS (--ssl-mode disable connects without it)",
}

Query: TypeAlias = Mapping[str, Any]  # what is None is left out
NOTHING: Query = {}

sleep = time.sleep
monotonic = time.monotonic


class Refused(Exception):  # noqa: N818 - a reply, printed as it is
    """One line for the user, and the exit code."""

    def __init__(
        self,
        message: str,
        code: Exit = Exit.USAGE,
        *,
        error: str = "",
        field: str = "",
        path: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.error = error  # the API's own code
        self.field = field
        self.path = path  # of the request that was refused

    @property
    def line(self) -> str:
        where = f" ({self.field})" if self.field else ""
        text = f"{self.error}: {self.message}" if self.error else self.message
        return " ".join(f"muster: {text}{where}".split())


class Accepted(Exception):  # noqa: N818 - a reply, too
    """An operation that goes on by itself, with what the API says of it."""

    def __init__(self, operation: dict[str, Any]) -> None:
        super().__init__(operation.get("name"))
        self.operation = operation


class Api:
    """The REST API as this program needs it. What can pass is asked again, a write under its own key.

    With `waits` an operation is followed to its end, otherwise it is raised as `Accepted`.
    """

    def __init__(self, http: "httpx.Client", *, waits: bool = True) -> None:
        self._waits = waits
        self._http = http
        self._heard = False  # an API that never answered is not waited for
        self._seen: dict[str, tuple[str, dict[str, Any]]] = {}

    def get(self, path: str, query: Query = NOTHING) -> dict[str, Any]:
        return _document(self._send("GET", path, query=query))

    def find(self, path: str, query: Query = NOTHING) -> dict[str, Any] | None:
        """None when it is not there."""
        answer = self._send("GET", path, query=query)
        return None if answer.status_code == 404 else _document(answer)

    def lines(self, path: str, query: Query = NOTHING) -> Iterator[str]:
        """Of an answer that goes on, as they come; heartbeats come more often than the time limit."""
        url, parameters = self._address(path, query)
        with self._http.stream("GET", url, params=parameters) as answer:
            if answer.is_error:
                answer.read()
                _document(answer)
            yield from text_lines(answer.iter_bytes())

    def latest(self, path: str) -> dict[str, Any]:
        """The same object as before when nothing changed since."""
        etag, document = self._seen.get(path, ("", {}))
        answer = self._send("GET", path, headers={"If-None-Match": etag} if etag else {})
        if answer.status_code == 304:
            return document
        shown = _document(answer)
        self._seen[path] = answer.headers.get("etag", ""), shown
        return shown

    def seen_etag(self, path: str) -> str:
        """Of the document that `latest` returned."""
        return self._seen[path][0]

    def pages(self, path: str, query: Query = NOTHING) -> Iterator[dict[str, Any]]:
        """Every page of a list, one document each."""
        page = self.get(path, query)
        yield page
        while link := page.get("nextLink"):
            page = _document(self._send("GET", link))
            yield page

    @contextlib.contextmanager
    def stream(self, path: str, query: Query) -> Iterator["httpx.Response"]:
        """An answer that is read as it arrives; one that breaks off is an error."""
        import httpx

        url, parameters = self._address(path, query)
        with self._http.stream("GET", url, params=parameters, timeout=LONGEST_FILE) as answer:
            if answer.is_error:
                answer.read()
                _document(answer)
            try:
                yield answer
            except httpx.TransportError as error:
                raise Refused(
                    f"the answer broke off, what was written is not complete: {error}"
                ) from error

    def all(self, path: str, query: Query = NOTHING) -> list[dict[str, Any]]:
        return [item for page in self.pages(path, query) for item in page["value"]]

    def put(
        self,
        path: str,
        body: dict[str, Any],
        *,
        new: bool = False,
        etag: str | None = None,
        is_last: bool = True,
    ) -> dict[str, Any]:
        """`new`: refused when it is there already; with an etag: when it was changed since it had that one.

        `is_last` false: more follows that needs it, so it is waited for in any case.
        """
        headers = {"If-None-Match": "*"} if new else {"If-Match": etag} if etag else {}
        answer = self._send("PUT", path, body=body, headers=headers)
        if new and answer.status_code == 412:
            raise there_already(path)
        return self._finished(answer, path, waits=self._waits or not is_last)

    def patch(self, path: str, body: dict[str, Any], *, etag: str | None = None) -> dict[str, Any]:
        """Likewise followed to its end, and refused when it was changed."""
        headers = {"If-Match": etag} if etag else {}
        return self._finished(
            self._send("PATCH", path, body=body, headers=headers), path, waits=self._waits
        )

    def post(
        self, path: str, body: dict[str, Any] | None = None, query: Query = NOTHING
    ) -> dict[str, Any]:
        return _document(self._send("POST", path, body=body, query=query))

    def delete(self, path: str, query: Query = NOTHING, *, etag: str | None = None) -> None:
        headers = {"If-Match": etag} if etag else {}
        answer = self._send("DELETE", path, query=query, headers=headers)
        if answer.status_code == 204:
            name = unquote(path.rsplit("/", 1)[-1])
            raise Refused(f"'{name}' is not there", Exit.NOT_FOUND, path=path)
        _document(answer)
        if operation := answer.headers.get("azure-asyncoperation"):
            self._follow(operation, waits=self._waits)

    def _finished(self, answer: "httpx.Response", path: str, *, waits: bool) -> dict[str, Any]:
        shown = _document(answer)
        if operation := answer.headers.get("azure-asyncoperation"):
            self._follow(operation, waits=waits)
            return self.get(path)
        return shown

    def _follow(self, operation: str, *, waits: bool) -> None:
        pause = 0.1
        while True:
            shown = _document(self._send("GET", operation))
            if shown["status"] in {"Failed", "Canceled"}:
                raise _refused(shown.get("error", {}), Exit.USAGE)
            if not waits:
                raise Accepted(shown)
            if shown["status"] == "Succeeded":
                return
            sleep(pause)
            pause = min(pause * 1.5, 2.0)

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: Query = NOTHING,
        headers: dict[str, str] | None = None,
    ) -> "httpx.Response":
        import httpx

        url, parameters = self._address(path, query)
        sent = {**(headers or {})}
        if method != "GET":
            sent["Idempotency-Key"] = str(uuid4())
        until = monotonic() + PATIENCE
        while True:
            wait = 1.0
            try:
                answer = self._http.request(method, url, params=parameters, json=body, headers=sent)
                self._heard = True
                if answer.status_code not in BUSY or monotonic() > until:
                    return answer
                wait = float(answer.headers.get("retry-after", wait))
            except httpx.TransportError:
                if not self._heard or monotonic() > until:
                    raise
            sleep(wait)

    def _address(self, path: str, query: Query) -> "tuple[str | httpx.URL, dict[str, str] | None]":
        """A link is complete and led by the API's own idea of its name; ours is the one that works."""
        if path.startswith("/"):
            return path, VERSION | {
                name: str(value) for name, value in query.items() if value is not None
            }
        link = urlsplit(path)
        return self._http.base_url.join(f"{link.path}?{link.query}"), None


def there_already(path: str) -> Refused:
    """Of a create, with what changes it instead."""
    collection, name = path.split("/")[-2:]
    return Refused(f"'{unquote(name)}' is there already; {INSTEAD[collection]}", error="Exists")


def text_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Only a line feed ends a line: a string may have other characters that end lines."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode() for line in lines)


def under(parent: str, *names: str) -> str:
    """The path of something below: names are quoted, so that a space or a percent sign stays one."""
    if "" in names:
        raise Refused("a name is empty")
    return "/".join([parent, *(quote(name, safe="") for name in names)])


def calling(options: argparse.Namespace, what: Callable[[Api], int]) -> int:
    """The exit code of `what` at the place that the options mean; an error becomes one line on stderr."""
    from muster.cli import contexts

    try:
        place = contexts.place(options)
    except Refused as refused:
        print(refused.line, file=sys.stderr)
        return refused.code
    if getattr(options, "account", "") is None:
        options.account = place.account

    def accepting(api: Api) -> int:
        try:
            return what(api)
        except Accepted as accepted:
            return _show_accepted(options, accepted.operation)

    return reaching_out(place, accepting, waits=not getattr(options, "no_wait", False))


def reaching_out(place: "Place", what: Callable[[Api], int], *, waits: bool = True) -> int:
    import httpx  # late: `muster engine` parses the same command line and needs none of it

    from muster.cli import names

    url = place.url
    try:
        if wrong := reaching.wrong_address(url):
            raise Refused(wrong)
        with connect(url, place.token, place.ca_file) as http:
            api = Api(http, waits=waits)
            try:
                return what(api)
            except Refused as refused:
                raise names.explained(api, refused) from refused
    except Refused as refused:
        hint = f"; muster login --name {place.context} gets in again" if place.context else ""
        is_token = refused.error.startswith(BAD_TOKENS)
        print(f"{refused.line}{hint if is_token else ''}", file=sys.stderr)
        return refused.code
    except (httpx.TransportError, httpx.InvalidURL) as error:
        print(f"muster: {reaching.no_answer(url, error)}", file=sys.stderr)
        return Exit.USAGE


def _show_accepted(options: argparse.Namespace, operation: dict[str, Any]) -> int:
    name = operation["name"]
    row = [name, operation["status"], output.moment(operation.get("startTime"))]
    goes_on = f"It goes on by itself; muster operation wait {name} waits for it."
    notes = [] if operation["status"] == "Succeeded" else [goes_on]
    output.show(
        options, operation, output.Table(("operation", "status", "started"), [row]), notes=notes
    )
    return Exit.SUCCEEDED


def connect(url: str, token: str, ca_file: Path | None = None) -> "httpx.Client":
    """`ca_file` None: the system's authorities, and that of a local `muster up --tls`."""
    import httpx

    headers = {"Authorization": f"Bearer {token}"}
    trusted: ssl.SSLContext | bool = True
    if authority := ca_file or reaching.local_authority(url):
        trusted = httpx.create_ssl_context()
        try:
            trusted.load_verify_locations(authority)
        except OSError as error:
            raise Refused(f"the CA file {authority} can't be read: {error}") from error
    return httpx.Client(base_url=url, headers=headers, timeout=LONGEST_ANSWER, verify=trusted)


def _document(answer: "httpx.Response") -> dict[str, Any]:
    if not answer.is_error:
        shown: dict[str, Any] = answer.json() if answer.content else {}
        return shown
    code = BY_STATUS.get(answer.status_code, Exit.USAGE)
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        raise Refused(f"the API answered {answer.status_code}", code) from None
    path = answer.request.url.raw_path.decode("ascii").partition("?")[0]
    if answer.request.method == "PUT":
        path = path.rpartition("/")[0]  # it need not be there itself
    raise _refused(error, code, path)


def _refused(error: dict[str, Any], code: Exit, path: str = "") -> Refused:
    """Every field that is wrong, in one line."""
    details = [{**each, "message": _ours(each["message"])} for each in error.get("details") or []]
    if len(details) > 1:
        details_text = "; ".join(f"{each.get('target', '')}: {each['message']}" for each in details)
        return Refused(details_text, code, error=error.get("code", ""), path=path)
    return Refused(
        _ours(error.get("message", "It failed.")),
        code,
        error=error.get("code", ""),
        field=error.get("target") or "",
        path=path,
    )


def _ours(message: str) -> str:
    for theirs, ours in OURS.items():
        message = message.replace(theirs, ours)
    return message
