-- name: begin_operation
-- One row; a unique violation when the resource has a running operation already.
insert into operation (tenant_id, subscription_key, location, resource_uid, resource_id, verb, caller, correlation_id)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning *;

-- name: running_operation
-- The one operation of the resource that has not ended, or none.
select * from operation where resource_uid = $1 and ended_at is null;

-- name: get_operation
-- One row or none; operations outlive their resource.
select * from operation where operation_id = $1;

-- name: end_operation
-- Ends a running operation; an ended one stays as it was.
update operation
   set status = $2, error = $3, ended_at = clock_timestamp()
 where operation_id = $1
   and ended_at is null;
