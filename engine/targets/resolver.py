"""Resolves a target group into targets, in stages: list → include → exclude → filter → order.

    resolution = await Resolver(document, lister).resolve()
    resolution.targets    # in a stable order
    resolution.skipped    # databases that are no targets, each with the reason
    resolution.excluded   # targets that an Exclude rule removed, each with the rule

The first three stages are those of each group, since a nested group keeps its own exclusions; filter and
order are those of the whole. `resolve(check_named=True)` also lists the databases that members only name,
and returns which of them are missing.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from engine.model.credential import Credential
from engine.model.group_document import Document, Member
from engine.targets.exclusions import Exclusions
from engine.targets.member_listing import Lister, MemberListing
from engine.targets.ordering import order
from engine.targets.resolution import Excluded, Resolution, SkippedDatabase, Target, TargetKey
from engine.targets.server_retry import ServerRetry
from engine.targets.sql_like import database_pattern
from muster.core.clock import Clock
from muster.core.errors import Fault, Unavailable

T = TypeVar("T")
Listing = tuple[Member, list[Target]]  # a member and the targets that it lists
TargetFilter = Callable[[Target], bool]  # True: it stays a target


def include(listings: Iterable[Listing]) -> list[Target]:
    """The targets of Include members, each once."""
    targets: dict[TargetKey, Target] = {}
    for member, listed in listings:
        if member.includes:
            for target in listed:
                first = targets.setdefault(target.key, target)
                if target.error is not None and first.error is None:
                    targets[target.key] = target  # a failed listing must stay visible
    return list(targets.values())


def exclude(
    document: Document, listings: Iterable[Listing], targets: Iterable[Target]
) -> tuple[list[Target], list[Excluded]]:
    """Splits the targets by the Exclude members of the same group, which win in any order."""
    exclusions = Exclusions(document)
    for member, listed in listings:
        if not member.includes:
            exclusions.add(member, listed)
    kept: list[Target] = []
    excluded: list[Excluded] = []
    for target in targets:
        rule = exclusions.rule_for(target)
        if rule is None:
            kept.append(target)
        else:
            excluded.append(Excluded(target, rule.target_id, document.text_of(rule)))
    return kept, excluded


def apply_filters(targets: Iterable[Target], filters: Sequence[TargetFilter]) -> list[Target]:
    """The targets that pass every filter."""
    return [target for target in targets if all(passes(target) for passes in filters)]


class Resolver:
    def __init__(
        self,
        document: Document,
        lister: Lister,
        default_credential: Credential | None = None,
        retry: ServerRetry | None = None,
        *,
        filters: Sequence[TargetFilter] = (),
        order_by: str | None = None,
        servers: Collection[str] | None = None,
    ) -> None:
        self._document = document
        self._filters = filters
        self._order_by = order_by
        self._servers = servers  # only Include members of these, by id in lower case
        retry = retry or ServerRetry(Clock(), 0)
        self._listing = MemberListing(document, lister, default_credential, retry)
        self._groups: dict[UUID, asyncio.Task[list[Target]]] = {}
        self._excluded: dict[TargetKey, Excluded] = {}
        self._unchecked: dict[TargetKey, Fault] = {}

    async def resolve(self, *, check_named: bool = False) -> Resolution:
        missing: list[Target] = []
        try:
            targets = await self._group(self._document.target_group_id)
            targets = apply_filters(targets, self._filters)
            if check_named:
                targets, missing = await self._check_named(targets)
                await self._list_others()
        finally:
            self._listing.cancel()
            for task in self._groups.values():
                task.cancel()
        kept = {target.key for target in targets}
        skipped = [
            each
            for (server_id, database), each in sorted(self._listing.skipped.items())
            if (server_id, database, "") not in kept
        ]
        excluded = [each for key, each in sorted(self._excluded.items()) if key not in kept]
        resolution = Resolution(
            order(targets, self._order_by), skipped, excluded, missing, self._unchecked
        )
        if not check_named:
            return resolution
        rules, unselected = self._document.rules, self._unselected(kept)
        return replace(resolution, rules=rules, unselected=unselected)

    def _unselected(self, kept: Collection[TargetKey]) -> list[SkippedDatabase]:
        """The databases that no member includes, or whose labels differ."""
        listing = self._listing
        databases = {key[:2] for key in kept} | {key[:2] for key in self._excluded}
        others = dict(listing.others())
        servers = {server_id for server_id, _ in others}
        for key, each in listing.unselected.items():
            exists = key in others or key[0] not in servers
            others[key] = replace(each, exists=exists)
        return [
            each
            for key, each in sorted(others.items())
            if key not in databases and key not in listing.skipped
        ]

    async def _list_others(self) -> None:
        """Lists the servers whose databases are only named, and whose labels may differ."""

        async def list_server(member: Member) -> None:
            with contextlib.suppress(Fault):
                await self._listing.databases(member, self._listing.server(member))

        members = self._document.members.values()
        named = (each for each in members if each.includes and each.type == "SqlDatabase")
        await _gather(list_server(each) for each in named if each.labels is not None)

    async def _group(self, group: UUID) -> list[Target]:
        members = self._document.groups[group].members
        listings = list(zip(members, await _gather(map(self._list, members)), strict=True))
        targets, excluded = exclude(self._document, listings, include(listings))
        for each in excluded:
            self._excluded.setdefault(each.target.key, each)
        return targets

    async def _list(self, member: Member) -> list[Target]:
        if (nested := member.target_group_id) is not None:
            if nested not in self._groups:  # once, however many groups contain it
                self._groups[nested] = asyncio.create_task(self._group(nested))
            return await self._groups[nested]
        if member.includes and self._servers is not None:
            server = self._document.server_of(member)
            if server is None or server.server_id.lower() not in self._servers:
                return []
        if not member.includes and member.type in Exclusions.BY_NAME:
            self._listing.server(
                member
            )  # the server must exist; the member's names decide the rest
            return []
        return await self._listing.targets(member)

    async def _check_named(self, targets: list[Target]) -> tuple[list[Target], list[Target]]:
        """The targets, and those that are only named and do not exist."""
        named = [target for target in targets if target.named]
        listed = [target for target in targets if not target.named]
        members = self._document.members
        checks = await _gather(self._check(target, members[target.rule]) for target in named)
        missing = [target for target, check in zip(named, checks, strict=True) if check is None]
        return listed + [target for target in checks if target is not None], missing

    async def _check(self, target: Target, member: Member) -> Target | None:
        """None when its server has no such database."""
        try:
            databases = await self._listing.databases(member, target.server)
        except Unavailable as fault:
            return replace(target, error=fault)
        except Fault as fault:
            self._unchecked[target.key] = fault
            return target
        return target if any(each.name == target.database for each in databases) else None


def needs_listing(document: Document) -> bool:
    """Whether servers must be queried; otherwise the members of the group name all of its targets."""
    return any(
        member.target_group_id is None
        and (member.type != "SqlDatabase" or database_pattern(member.database_name) is not None)
        and (member.includes or member.type not in Exclusions.BY_NAME)
        for group in document.groups.values()
        for member in group.members
    )


async def _gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs them at once; the first that fails ends the others."""
    several = list(coroutines)
    if len(several) == 1:
        return [await several[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in several]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
