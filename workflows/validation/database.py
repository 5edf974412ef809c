"""What a database and a pool may be."""

import fnmatch
import re

from muster.core.enumeration import is_own
from muster.core.errors import FieldError, InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Settings
from workflows.model.resource import POOL, Resource
from workflows.resource_kind import Draft
from workflows.validation import ineffective
from workflows.validation.common import identifier, labels, within


def database(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    errors = [
        *labels("properties.labels", draft.properties.get("labels")),
        *ineffective.database(draft.properties),
    ]
    if old is None and is_own(draft.id.name, settings.provider_databases):
        errors.append(
            FieldError(
                "name",
                f"'{draft.id.name}' belongs to the server itself; it can be a target, not a resource.",
                "CannotUseReservedDatabaseName",
            )
        )
    if old is not None and draft.id.name != old.name:
        errors.append(
            FieldError(
                "name",
                f"The database is called '{old.name}'; a name that differs in case only is not a rename.",
                "InvalidResourceName",
            )
        )
    return errors + _pool_reference(draft)


def pool(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    del old, settings
    new = draft.properties
    errors = [
        *within("properties.maxConnections", new.get("maxConnections"), 1, 10_000),
        *within("properties.slotsPerDatabase", new.get("slotsPerDatabase"), 1, 1_000),
        *labels("properties.labels", new.get("labels")),
    ]
    for n, name in enumerate(new.get("databases") or []):
        if problem := identifier(name):
            errors.append(FieldError(f"properties.databases[{n}]", problem))
    if len(new.get("databases") or []) > 10_000:
        errors.append(
            FieldError(
                "properties.databases",
                "At most 10,000 databases in a list; use databasePattern.",
                "QuotaExceeded",
            )
        )
    pattern = new.get("databasePattern")
    if pattern is not None and (not 1 <= len(pattern) <= 128 or not _compiles(pattern)):
        errors.append(
            FieldError(
                "properties.databasePattern",
                "Expected a pattern such as tenant_* of at most 128 characters.",
            )
        )
    return errors


def _pool_reference(draft: Draft) -> list[FieldError]:
    where = "properties.elasticPoolId"
    text = draft.properties.get("elasticPoolId")
    if text is None:
        return []
    try:
        id = ResourceId.parse(text, target=where)
    except InvalidRequest as wrong:
        return [FieldError(where, wrong.message, wrong.code)]
    server = draft.id.parent
    if id.type.lower() != POOL.lower() or id.parent != server:
        return [
            FieldError(
                where,
                f"Expected an elastic pool of the same server: {server}/elasticPools/…",
                "InvalidElasticPoolId",
            )
        ]
    return []


def _compiles(pattern: str) -> bool:
    try:
        re.compile(fnmatch.translate(pattern))
    except re.error:
        return False
    return True
