"""The effective settings of this environment, or of the `muster up` on this machine; `muster config print`."""

import sys
from dataclasses import fields
from pathlib import Path

from muster.core.egress import Rules
from muster.core.places import default_data_dir
from muster.core.settings import PREFIX, Settings, SettingsError, shown, surroundings

DATABASE = f"{PREFIX}DATABASE_URL"


def show(data_dir: Path | None) -> int:
    settings = load(data_dir)
    if settings is None:
        return 1
    for field in fields(settings):
        print(f"{PREFIX}{field.name.upper()}={shown(getattr(settings, field.name))}")
    return 0


def load(data_dir: Path | None) -> Settings | None:
    """With a data directory, or without a metadata database in the environment: those of its `muster up`."""
    from muster.roles import datadir

    environ = surroundings()
    hint = ""
    if data_dir or not (environ.get(DATABASE) or environ.get(f"{DATABASE}_FILE")):
        folder = data_dir or default_data_dir()
        kept = datadir.kept_settings(folder)
        if kept is None:
            hint = f" (`muster up` makes its own; none runs in {folder}, --data-dir names another)"
            environ = {} if data_dir else environ
        else:
            environ = kept
            print(f"muster: the settings of the `muster up` in {folder}", file=sys.stderr)
    try:
        settings = Settings.load(environ)
        Rules.of(settings)
    except SettingsError as error:
        print(f"muster: {error}{hint}", file=sys.stderr)
        return None
    return settings
