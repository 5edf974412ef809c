"""What a session at a user's server begins with, independent of what ALTER DATABASE and ALTER ROLE have set there.

Both can be set by the owner of a tenant, and some settings change what a script means: with another search_path
`select now()` calls the tenant's function, with the rights of the login. The values go into the startup packet, which
wins over both, and to which RESET ALL and DISCARD ALL return. A pooler takes no such packet: behind one a transaction
sets them for itself.

session_replication_role is not here: only a superuser may set it, so it is looked at (engine/attempt/session_setup.py).
"""

import re
from collections.abc import Mapping

# For SQL of our own: nothing is found but what is PostgreSQL's.
OWN_PATH = "pg_catalog, pg_temp"
# For what a user wrote. pg_catalog is not named: so it is searched first, and nothing is created in it.
SCRIPT_PATH = '"$user", public, pg_temp'

FIXED: Mapping[str, str] = {
    "standard_conforming_strings": "on",
    "row_security": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "check_function_bodies": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "escape_string_warning": "on",
    "default_table_access_method": "heap",
    "default_tablespace": "",
}

# What a step can't set as one of its parameters: it has a property of its own, or Muster sets it for each attempt.
RESERVED = frozenset(
    {
        "search_path",
        "role",
        "session_authorization",
        "transaction_read_only",
        "default_transaction_read_only",
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "client_connection_check_interval",
        "application_name",
    }
)
NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,]*))\s*(?:,|\Z)')


def startup(search_path: str) -> dict[str, str]:
    """For the startup packet; `role` keeps a database from choosing another role than the login's own."""
    return {**FIXED, "search_path": search_path, "role": "none"}


def with_temp_last(search_path: str) -> str:
    """A path that names no pg_temp has it first, where tables of the session hide those of the schemas."""
    names = [quoted or plain.lower() for quoted, plain in NAME.findall(search_path)]
    return search_path if "pg_temp" in names else ", ".join(filter(None, (search_path, "pg_temp")))


def names_catalog(search_path: str) -> bool:
    """Whether pg_catalog stands in a path: then it is not searched first, and objects are created in it."""
    names = (name.strip(' "\t\n\r\f\v').lower() for name in search_path.split(","))
    return "pg_catalog" in names


def is_reserved(parameter: str) -> bool:
    return parameter.lower() in RESERVED or parameter.lower().startswith("muster.")
