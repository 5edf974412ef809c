"""Quotes names and texts for SQL."""


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def literal(value: str) -> str:
    """Correct for both values of standard_conforming_strings."""
    if "'" not in value and "\\" not in value and "\0" not in value:
        return f"'{value}'"
    quoted = value.replace("\0", "").replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"
