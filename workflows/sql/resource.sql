-- name: get_resource
-- One row or none; with an account, the last heartbeat of the engine that is shown.
select r.*,
       (select max(w.heartbeat_at)
          from workload w
         where r.type = 'Microsoft.Sql/servers/jobAgents'
           and w.account_uid = r.uid
           and w.kind = 'engine'
           and w.epoch = (r.observed #>> '{instance,epoch}')::bigint) as heartbeat_at
  from resource r
 where r.tenant_id = $2 and r.key = $1;

-- name: lock_resource
-- One row or none; held until the transaction ends, so that writers of one resource follow each other.
select * from resource where tenant_id = $2 and key = $1 for no key update;

-- name: get_resources
-- Those of the keys that exist, and the locks that hold at any of them, in one round trip.
select * from resource where tenant_id = $2 and key = any($1::text[])
union all
select * from resource
 where tenant_id = $2 and type = 'Microsoft.Authorization/locks' and properties ->> 'scopeKey' = any($1::text[]);

-- name: locks_inside
-- Locks that were made below a scope.
select * from resource
 where type = 'Microsoft.Authorization/locks' and starts_with(properties ->> 'scopeKey', $1 || '/')
 order by key
 limit 20;

-- name: insert_resource
-- The new row; a unique violation when the key or a server's name is taken.
insert into resource (
    uid, key, id, type, name, parent_key, subscription_key, group_key, tenant_id, location, tags, sku, identity,
    kind, properties, observed, sealed, provisioning_state,
    created_by, created_by_type, modified_by, modified_by_type)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $19, $20)
returning *;

-- name: update_resource
-- The row with its new content and the next version.
update resource
   set id = $2, name = $3, location = $4, tags = $5, sku = $6, identity = $7, kind = $8,
       properties = $9, observed = observed || $10, sealed = $11, provisioning_state = $12,
       modified_by = $13, modified_by_type = $14, modified_at = clock_timestamp(),
       row_version = row_version + 1
 where uid = $1
returning *;

-- name: delete_resource
-- Removes the row and what hangs on it as an extension, such as role assignments.
delete from resource
 where tenant_id = $2
   and (key = $1 or starts_with(key, $1 || '/providers/microsoft.authorization/'));

-- name: list_children
-- Rows of a type directly below a parent, in key order after a cursor, as far as the caller may see them;
-- with accounts, the last heartbeat of the engine that is shown.
select r.*,
       (select max(w.heartbeat_at)
          from workload w
         where r.type = 'Microsoft.Sql/servers/jobAgents'
           and w.account_uid = r.uid
           and w.kind = 'engine'
           and w.epoch = (r.observed #>> '{instance,epoch}')::bigint) as heartbeat_at
  from resource r
 where r.parent_key = $1
   and r.type = $2
   and r.key > $3
   and ($5::text[] is null
        or exists (select from unnest($5::text[]) as seen (scope)
                    where r.key = scope or starts_with(r.key, scope || '/') or starts_with(scope, r.key || '/')))
 order by r.key
 limit $4;

-- name: list_subscription
-- Rows of a type anywhere in a subscription, as far as the caller may see them.
select *
  from resource
 where subscription_key = $1
   and type = $2
   and key > $3
   and ($5::text[] is null
        or exists (select from unnest($5::text[]) as seen (scope)
                    where key = scope or starts_with(key, scope || '/') or starts_with(scope, key || '/')))
 order by key
 limit $4;

-- name: list_tenant
-- Rows of a type in a tenant, as far as the caller may see them.
select *
  from resource
 where tenant_id = $1
   and type = $2
   and (subscription_key is null or type = 'Microsoft.Resources/subscriptions')
   and key > $3
   and ($5::text[] is null
        or exists (select from unnest($5::text[]) as seen (scope)
                    where key = scope or starts_with(key, scope || '/') or starts_with(scope, key || '/')))
 order by key
 limit $4;

-- name: list_extensions
-- Extension rows of a type at a scope, above it and below it, as far as they lie in one of the caller's scopes.
select *
  from resource
 where tenant_id = $1
   and type = $2
   and key > $3
   and (properties ->> 'scopeKey' = any($5::text[])
        or starts_with(properties ->> 'scopeKey', $6 || '/')
        or $6 = '/')
   and exists (select from unnest($7::text[]) as seen (scope)
                where scope = '/' or key = scope or starts_with(key, scope || '/'))
 order by key
 limit $4;

-- name: name_taken
-- Whether a server of that name exists anywhere in this installation.
select exists (select from resource where type = 'Microsoft.Sql/servers' and lower(name) = lower($1));

-- name: lock_children
-- Rows of a type directly below a parent, locked.
select * from resource where parent_key = $1 and type = $2 order by key for no key update;

-- name: pool_members
-- Databases of the server that name the pool.
select name from resource
 where parent_key = $1
   and type = 'Microsoft.Sql/servers/databases'
   and lower(properties ->> 'elasticPoolId') = $2
 order by key
 limit 20;

-- name: roles_of
-- What a principal and its groups hold in its tenant: an id may be that of a principal and that of a group.
select properties ->> 'scopeKey' as scope, properties ->> 'roleDefinitionKey' as role
  from resource
 where type = 'Microsoft.Authorization/roleAssignments'
   and tenant_id = $1
   and properties ->> 'principalId' = any($3::text[] || $2::text)
   and case when properties ->> 'principalType' = 'Group' then properties ->> 'principalId' = any($3::text[])
            else properties ->> 'principalId' = $2 end;

-- name: token_by_digest
-- The service token with that digest, or none.
select * from resource where type = 'Microsoft.Authorization/serviceTokens' and sealed ->> 'digest' = $1;

-- name: tenant_of_subscription
-- Null when there is no such subscription.
select tenant_id from resource
 where type = 'Microsoft.Resources/subscriptions' and key = '/subscriptions/' || $1;

-- name: write_audit
-- One event for each resource of a JSON array, alike but for that; never changed afterwards.
insert into audit_event (tenant_id, subscription_key, group_key, resource_id, action, status, caller, caller_type,
                         principal_id, token_id, caller_address, correlation_id, request_id, operation_id, detail)
select $1, r.subscription_key, r.group_key, r.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
  from rows from (json_to_recordset($2::text::json) as (subscription_key text, group_key text, id text))
       with ordinality as r (subscription_key, group_key, id, place)
 order by r.place;

-- name: list_audit
-- Newest first after a cursor, inside a scope, with every filter optional.
select *
  from audit_event
 where tenant_id = $1
   and ($2::text is null or subscription_key = $2)
   and event_id < $3
   and ($5::timestamptz is null or at >= $5)
   and ($6::timestamptz is null or at <= $6)
   and ($7::text is null or group_key = $7)
   and ($8::text is null or lower(resource_id) = lower($8))
   and ($9::text is null or correlation_id = $9)
   and ($10::text is null or caller = $10)
   and ($11::text is null or lower(status) = lower($11))
   and ($12::text is null or lower(action) = lower($12))
   and ($13::text is null or starts_with(lower(action), lower($13) || '/'))
   and ($14::text[] is null
        or exists (select from unnest($14::text[]) as seen (scope)
                    where lower(resource_id) = scope or starts_with(lower(resource_id), scope || '/')))
 order by event_id desc
 limit $4;

-- name: lock_answer
-- Requests under one key follow each other.
select pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 0));

-- name: get_answer
-- What the first request under this key was answered, or none.
select body_digest, outcome from answer where caller = $1 and request_key = $2 and created_at > clock_timestamp() - interval '24 hours';

-- name: keep_answer
-- Remembers it for a day.
insert into answer (caller, request_key, body_digest, outcome) values ($1, $2, $3, $4)
on conflict (caller, request_key) do update set body_digest = $3, outcome = $4, created_at = clock_timestamp();

-- name: accounts_of_database
-- The account that is linked to a database, if any.
select id from resource
 where type = 'Microsoft.Sql/servers/jobAgents' and lower(properties ->> 'databaseId') = $1;

-- name: accounts_below
-- Job accounts anywhere below a scope.
select id from resource
 where type = 'Microsoft.Sql/servers/jobAgents' and subscription_key = $1 and starts_with(key, $2 || '/')
 order by key
 limit 20;

-- name: has_server
-- Whether a server of that name stands anywhere in a subscription.
select exists (select from resource
                where type = 'Microsoft.Sql/servers' and subscription_key = $1 and lower(name) = lower($2)
                  and tenant_id = $3);

-- name: count_in_subscription
-- How many resources of a type a subscription has.
select count(*) from resource where subscription_key = $1 and type = $2;
