"""A query over a target group without a job of its own."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class Query(Properties, frozen=True):
    REQUIRED: ClassVar = frozenset({"targetGroup", "sql"})

    target_group: Maybe[str] = UNSET  # its name or its id
    sql: Maybe[str] = UNSET
    read_only: Maybe[bool] = UNSET  # rolled back; true unless said otherwise
    timeout_seconds: Maybe[int] = UNSET
    max_rows: Maybe[int] = UNSET  # of each result set of each target
    credential: Maybe[str] = UNSET  # None: that of the target
