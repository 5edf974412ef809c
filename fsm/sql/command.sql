-- name: lock_key
-- Requests under one key follow each other.
select pg_advisory_xact_lock(hashtextextended($1, 1));

-- name: command_of_key
-- The command that was begun under a client's key, or none.
select command_id, body_digest from command where request_key = $1;

-- name: begin_command
-- True: it is begun, for the first time or after it had failed. Otherwise it is under way or done.
insert into command as c (command_id, account_uid, request_key, body_digest)
values ($1, $2, $3, $4)
on conflict (command_id) do update
   set status = 'Started', begun_at = clock_timestamp()
 where c.status = 'Failed'
returning true;

-- name: settle_command
-- The outcome, once, with its audit event.
with settled as (
    update command set status = $2 where command_id = $1 and status = 'Started' returning command_id
)
insert into audit_event (tenant_id, subscription_key, group_key, resource_id, action, status, caller, caller_type,
                         principal_id, token_id, caller_address, correlation_id, request_id, operation_id, detail)
select e.tenant_id, e.subscription_key, e.group_key, e.resource_id, e.action, $2, e.caller, e.caller_type,
       e.principal_id, e.token_id, e.caller_address, e.correlation_id, e.request_id, e.operation_id, e.detail || $3::jsonb
  from settled
  join lateral (select *
                  from audit_event
                 where operation_id = settled.command_id and status = 'Started'
                 order by event_id desc
                 limit 1) e on true;

-- name: open_commands
-- Begun so long ago that no process works on them any more.
select command_id, account_uid
  from (select command_id, account_uid, begun_at,
               row_number() over (partition by account_uid order by begun_at) as place
          from command
         where status = 'Started' and begun_at < clock_timestamp() - $1::interval) c
 order by place, begun_at
 limit $2;

-- name: forget_commands
-- Old enough that no repeated request will come.
delete from command where status <> 'Started' and begun_at < clock_timestamp() - $1::interval;
