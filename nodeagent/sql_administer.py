"""The queries that run in a control database as the server's administrator."""

from muster.core.sql import Queries

A = Queries("nodeagent.sql", "administer.sql")
