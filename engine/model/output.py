"""The output of a step: the table that the rows of its first result set are written to."""

from typing import Literal

import msgspec


class OutputOptions(msgspec.Struct, frozen=True, rename="camel"):
    """options.output"""

    include_target: bool = False
    on_mismatch: Literal["fail", "addColumn"] = "fail"


class StepOutput(msgspec.Struct, frozen=True, rename="camel"):
    """Names as they were given; the server's is looked up in the directory for each attempt."""

    server_name: str
    database_name: str
    schema_name: str
    table_name: str

    @property
    def table(self) -> str:
        """For messages."""
        return f"{self.schema_name}.{self.table_name} in {self.database_name} at {self.server_name}"
