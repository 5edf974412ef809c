"""The schema of a control database as data: numbered migrations, functions and views, one per file."""

MIGRATIONS = "engine.sql.migrations"
REPLACEABLE = ("engine.sql.functions", "engine.sql.views")  # in this order; applied when changed
MIN_ENGINE_VERSION = "0.1.0"  # an older engine would not understand what the schema holds
