-- for: owner
create or replace function jobs_internal.list_cancellations(
    p_run jobs_internal.job_execution, p_target jobs_internal.target_execution
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    -- Names are looked up by subqueries: the caller may have disabled joins by key.
    return (
        select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'requestedBy', c.requested_by, 'requestedAt', iso_time(c.requested_at), 'reason', c.reason,
                   'door', c.door, 'needed', c.cancel_method, 'completedAt', iso_time(c.completed_at))
                   || coalesce((select jsonb_build_object('stepName', s.step_name)
                                  from step_execution s
                                 where (s.run_day, s.job_execution_id, s.step_id)
                                       = (p_run.run_day, c.job_execution_id, c.step_id)), '{}')
                   || coalesce((select jsonb_build_object(
                                           'targetId', d.target_id, 'serverName', d.server_name,
                                           'databaseName', d.database_name, 'schemaName', d.schema_name)
                                  from snapshot_target d
                                 where d.ordinal = c.ordinal
                                   and d.snapshot_id = (select s.snapshot_id from step_execution s
                                                         where (s.run_day, s.job_execution_id, s.step_id)
                                                               = (p_run.run_day, c.job_execution_id, c.step_id))), '{}'))
                   order by c.requested_at, c.cancellation_id), '[]')
          from (select c.*
                  from cancellation c
                 where c.job_execution_id = p_run.job_execution_id
                   and (p_target.ordinal is null
                        or (c.step_id is null or c.step_id = p_target.step_id)
                           and (c.ordinal is null or c.ordinal = p_target.ordinal)
                           and c.requested_at <= coalesce(p_target.end_time, 'infinity'))
                 order by c.requested_at, c.cancellation_id
                 limit 100) c);
end $$;
comment on function jobs_internal.list_cancellations(jobs_internal.job_execution, jobs_internal.target_execution) is
    'The cancellations of a run and its parts, the oldest first, at most 100; with a target only those that applied '
    'to it.';
