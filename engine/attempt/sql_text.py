"""Names and texts as they are written into SQL for a target."""


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def literal(value: str) -> str:
    """Right whatever standard_conforming_strings is while the message is read."""
    if "'" not in value and "\\" not in value and "\0" not in value:
        return f"'{value}'"
    quoted = value.replace("\0", "").replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"
