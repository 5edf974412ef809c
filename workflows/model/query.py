"""A query over a target group without a job of its own."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.start import RunTarget
from workflows.model.wire import Maybe, Properties


class Query(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"sql"})
    ABOUT: ClassVar = {
        "targetGroup": "Name or id of the group whose targets are queried; either it or targets.",
        "targets": "Databases, schemas, and servers with all of their databases; either they or targetGroup.",
        "limit": "The first so many targets.",
    }

    target_group: Maybe[str] = UNSET
    targets: Maybe[list[RunTarget]] = UNSET
    limit: Maybe[int] = UNSET
    sql: Maybe[str] = UNSET
    read_only: Maybe[bool] = UNSET  # rolled back; true unless said otherwise
    timeout_seconds: Maybe[int] = UNSET
    max_rows: Maybe[int] = UNSET  # of each result set of each target
    credential: Maybe[str] = UNSET  # None: that of the target
