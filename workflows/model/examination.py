"""Questions about logins at targets."""

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class Doctor(Properties, frozen=True):
    after: Maybe[str] = UNSET  # the `next` of the answer before


class LoginTest(Doctor, frozen=True):
    servers: Maybe[list[str]] = UNSET  # their names; without it, all that the account may use
    database_name: Maybe[str] = UNSET  # default: the maintenance database of each server
