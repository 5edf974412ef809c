"""The cast of the authorization tests: who they are and what they hold."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx

from muster.core.settings import Settings
from tests.support import arm
from tests.support.oidc import ISSUER, JWKS, TENANT, Issuer
from workflows.services import Services as WorkflowServices
from workflows.roles import CONTRIBUTOR, OWNER, PREFIX, READER

OTHER_TENANT = "99999999-0000-0000-0000-000000000009"
ELSEWHERE = f"{arm.SUBSCRIPTION}/resourceGroups/elsewhere"
AUTHORIZATION = "/providers/Microsoft.Authorization"

# What a runner would do in time: everything that was begun is over.
SETTLE = """
update operation set status = 'Succeeded', ended_at = clock_timestamp() where ended_at is null;
update resource set provisioning_state = 'Succeeded' where provisioning_state <> 'Succeeded';
"""
# A second tenant's owner: nothing in the API makes one, since an installation begins with one tenant.
FOREIGN_OWNER = """
insert into resource (key, id, type, name, tenant_id, properties,
                      created_by, created_by_type, modified_by, modified_by_type)
values (lower($1), $1, 'Microsoft.Authorization/roleAssignments', 'foreign', $2,
        jsonb_build_object('principalId', 'other', 'roleDefinitionKey', $3::text, 'scopeKey', '/',
                           'roleDefinitionId', $4::text),
        'test', 'User', 'test', 'User')
"""


def uuid_of(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, text))


@dataclass
class PrincipalsApi:
    plane: WorkflowServices
    app: Any
    issuer: Issuer
    owner: httpx.AsyncClient

    def actor(self, who: str) -> httpx.AsyncClient:
        match who:
            case "none":
                return arm.calling(self.app, None)
            case "expired":
                return arm.calling(self.app, self.issuer.token("owner", exp=1_700_000_000))
            case "other":
                return arm.calling(self.app, self.issuer.token("other", tid=OTHER_TENANT))
            case _:
                return arm.calling(self.app, self.issuer.token(who))

    async def settle(self) -> None:
        async with self.plane.db.connection() as connection:
            await connection.execute(SETTLE)


async def grant(
    owner: httpx.AsyncClient, scope: str, who: str, role: str, type: str = "User"
) -> str:
    name = uuid_of(f"{scope} {who} {role} {type}")
    properties = {"principalId": who, "principalType": type, "roleDefinitionId": PREFIX + role}
    await arm.put(
        owner, f"{scope}{AUTHORIZATION}/roleAssignments/{name}", {"properties": properties}
    )
    return name


@contextlib.asynccontextmanager
async def start_api(settings: Settings, **changes: Any) -> AsyncIterator[PrincipalsApi]:
    """`owner` (tenant), `reader` (tenant), `elsewhere` (Contributor of another group of the same
    subscription), `other` (Owner of another tenant); a group with a server, a database and a pool.
    """
    issuer = Issuer()
    settings = replace(
        arm.local(settings),
        oidc_issuer=ISSUER,
        oidc_jwks_url=JWKS,
        oidc_tenants=(TENANT, OTHER_TENANT),
        throttle="off",
        **changes,
    )
    async with arm.plane(settings) as plane:
        app = arm.build(plane, http=issuer.client())
        async with arm.calling(app) as local:
            await arm.fill(local)
            await arm.put(local, ELSEWHERE, {"location": "local"})
            await grant(local, "", "owner", OWNER.id)
            await grant(local, "", "reader", READER.id)
            await grant(local, ELSEWHERE, "elsewhere", CONTRIBUTOR.id)
            foreign = f"{AUTHORIZATION}/roleAssignments/foreign"
            await plane.db.execute(
                FOREIGN_OWNER, foreign, OTHER_TENANT, OWNER.id, PREFIX + OWNER.id
            )
            made = PrincipalsApi(plane, app, issuer, local)
            await made.settle()
            await arm.put(local, f"{arm.SERVER}/databases/d1", {})
            await arm.put(local, f"{arm.SERVER}/elasticPools/p1", {})
            await arm.put(local, f"{AUTHORIZATION}/serviceTokens/t1", {})
            await made.settle()
            yield made
