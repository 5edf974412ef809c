"""What each command does, one module each."""

from collections.abc import Awaitable, Callable, Mapping

from nodeagent.commands import (
    drain,
    install_schema,
    pause,
    read_epoch,
    remove_schema,
    resume,
    sync_directory,
    upgrade_schema,
    verify_schema,
)
from nodeagent.work import Work

Handler = Callable[[Work], Awaitable[str]]  # answers with the result as JSON

HANDLERS: Mapping[str, Handler] = {
    "install_schema": install_schema.run,
    "upgrade_schema": upgrade_schema.run,
    "remove_schema": remove_schema.run,
    "verify_schema": verify_schema.run,
    "sync_directory": sync_directory.run,
    "read_epoch": read_epoch.run,
    "drain": drain.run,
    "pause": pause.run,
    "resume": resume.run,
}
