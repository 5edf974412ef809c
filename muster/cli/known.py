"""What the placeholders of a hint stand for, looked up where the installation knows it."""

from dataclasses import dataclass
from typing import Any

from muster.cli import lookup
from muster.cli.client import Api, Refused, under
from muster.cli.runs import Run


@dataclass(frozen=True)
class Names:
    """As they stand in a command where nothing is known."""

    group: str = "GROUP"
    credential: str = "NAME"
    user: str = "USER"
    role: str = "ROLE"  # the same user where it is part of SQL


class Lookup:
    """Of one run. Each step is asked for once, and only when a hint has a placeholder.

    `group` and `credential` are those of the command line where there is no step to ask for, as in `muster exec`;
    None: the targets were named without a group.
    """

    def __init__(
        self, api: Api, run: Run, group: str | None = "", credential: str | None = None
    ) -> None:
        self._api = api
        self._run = run
        self.has_group = group is not None
        self._step = {"targetGroup": group, "credential": credential} if group else None
        self._account = run.path.partition("/jobs/")[0]
        self._found: dict[tuple[str, str], Names] = {}

    def of(self, cause: dict[str, Any]) -> Names:
        target = (cause.get("targets") or [{}])[0]
        step = cause.get("stepName") or target.get("stepName") or ""
        key = step, str(target.get("serverName") or "")
        if key not in self._found:
            try:
                self._found[key] = self._names(*key)
            except Refused:  # a hint with a placeholder is better than an error
                self._found[key] = Names()
        return self._found[key]

    def _names(self, step: str, server: str) -> Names:
        path = self._run.path.partition("/executions/")[0]
        names: dict[str, Any] | None = self._step
        if names is None:
            shown = self._api.find(under(path, "steps", step)) if step else None
            if shown is None:
                return Names()
            names = shown["properties"]
        group = _last(names.get("targetGroup"))
        credential = _last(names.get("credential")) or self._login(group, server)
        user = self._user(credential)
        return Names(
            group=group or Names.group,
            credential=credential or Names.credential,
            user=user or Names.user,
            role='"{}"'.format(user.replace('"', '""')) if user else Names.role,
        )

    def _login(self, group: str, server: str) -> str:
        """As a run looks for it where the step names none: target group, server, account."""
        group_document = (
            self._api.find(under(self._account, "targetGroups", group)) if group else None
        )
        members = group_document["properties"]["members"] if group_document else []
        named = {
            _last(each["credential"])
            for each in members
            if each.get("credential")
            and server.lower() in ("", str(each.get("serverName", "")).lower())
        }
        if named:
            return named.pop() if len(named) == 1 else ""
        for each in lookup.servers(self._api) if server else []:
            credential = (each.get("properties") or {}).get("jobCredential")
            if each["name"].lower() == server.lower() and credential:
                return _last(credential)
        account = self._api.find(self._account) or {"properties": {}}
        return _last(account["properties"].get("defaultCredential"))

    def _user(self, credential: str) -> str:
        document = (
            self._api.find(under(self._account, "credentials", credential)) if credential else None
        )
        return str(document["properties"].get("username") or "") if document else ""


def _last(id: str | None) -> str:
    return id.rsplit("/", 1)[-1] if id else ""
