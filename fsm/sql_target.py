"""The queries that run on customers' servers, as a plain administrator."""

from muster.core.sql import Queries

T = Queries("fsm.sql", "target.sql")
