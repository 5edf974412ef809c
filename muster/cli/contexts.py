"""Where the API is and who calls it: by option, environment, or a context that `muster login` kept."""

import argparse
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.cli import reaching
from muster.cli.client import Refused
from muster.cli.exits import Exit
from muster.cli.typed import did_you_mean
from muster.core.files import make_folder, write_private
from muster.core.places import default_data_dir
from muster.core.settings import surroundings

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Context:
    url: str
    token: str = field(default="", repr=False)
    account: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True)
class Contexts:
    """All that are kept, in a file that only its user can read."""

    current: str | None = None
    by_name: dict[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        if name not in self.by_name:
            near = did_you_mean(name, self.by_name) or "; muster login keeps one"
            raise Refused(f"there is no context '{name}'{near}", Exit.NOT_FOUND)
        return self.by_name[name]

    def having(self, name: str, context: Context) -> "Contexts":
        return replace(self, by_name={**self.by_name, name: context})

    def without(self, name: str) -> "Contexts":
        rest = {each: context for each, context in self.by_name.items() if each != name}
        return Contexts(None if self.current == name else self.current, rest)


@dataclass(frozen=True)
class Place:
    """Where one command goes."""

    url: str
    token: str = field(repr=False)
    token_from: str
    account: str | None = None
    ca_file: Path | None = None
    context: str | None = None


def place(options: argparse.Namespace) -> Place:
    """Options first, then the environment, then the context; a token of a context goes to its URL only."""
    environ, kept = surroundings(), read()
    asked = getattr(options, "context", None)
    name = asked or environ.get("MUSTER_CONTEXT") or kept.current
    context = kept.named(name) if name else None
    if asked and options.url:
        raise Refused("use --url or --context: a context has its own URL")
    url = options.url or (None if asked else environ.get("MUSTER_URL"))
    url = url or (context.url if context else DEFAULT_URL)
    if context is None or url.rstrip("/") != context.url:
        name, context = None, Context(url)
    account = context.account if asked else environ.get("MUSTER_ACCOUNT") or context.account
    if asked and context.token:
        token, source = context.token, f"context {name}"
    else:
        token, source = _token(url, name, context)
    ca_file = Path(context.ca_file) if context.ca_file else None
    return Place(url, token, source, account, ca_file, name)


def read() -> Contexts:
    file = path()
    if not reaching.is_readable(file):
        return Contexts()
    try:
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        by_name = {name: Context(**each) for name, each in kept["contexts"].items()}
        return Contexts(kept["current"], by_name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{file} can't be read: {error}; without it, muster login begins again"
        ) from error


def write(contexts: Contexts) -> None:
    file = path()
    by_name = {name: asdict(each) for name, each in contexts.by_name.items()}
    try:
        make_folder(file.parent)
        write_private(
            file, json.dumps({"current": contexts.current, "contexts": by_name}, indent=2)
        )
    except OSError as error:
        raise Refused(f"{file} can't be written: {error}") from error


def path() -> Path:
    folder = surroundings().get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "muster" / "contexts.json"


def _token(url: str, name: str | None, context: Context) -> tuple[str, str]:
    """And where it is from. That of a `muster up` on this machine goes to this machine only."""
    environ = surroundings()
    if token := environ.get("MUSTER_TOKEN"):
        return token, "MUSTER_TOKEN"
    if file := environ.get("MUSTER_TOKEN_FILE"):
        return _content(Path(file)), "MUSTER_TOKEN_FILE"
    if context.token:
        return context.token, f"context {name}"
    if reaching.is_local(url):
        file_here = default_data_dir() / "secrets" / "token"
        if reaching.is_readable(file_here):
            return _content(file_here), "muster up on this machine"
    raise Refused("no token: muster login, or set MUSTER_TOKEN or MUSTER_TOKEN_FILE")


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise Refused(f"the token can't be read: {error}") from error
