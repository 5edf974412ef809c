-- for: engine
create or replace function jobs_internal.revoke_host_tasks(p_epoch bigint, p_host uuid)
returns table (run_day date, job_execution_id uuid, step_id integer, ordinal integer, attempt integer,
               invocation_id uuid, old_invocation uuid, task_lifecycle text, backend_pid integer, xact_id text,
               server_id text, database_name text, credential_id uuid, credential_version bigint,
               start_time timestamptz, idempotent boolean, guard boolean, transaction text, verify boolean, output boolean)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    days constant date[] := array(select distinct x.run_day from job_execution x where x.end_time is null);
begin
    perform check_epoch(p_epoch);
    perform lock_reports();
    delete from dispatch b where b.host_id = p_host;
    return query
    with deleted as (
        delete from task t
         where t.run_day = any(days) and t.host_id = p_host and t.lifecycle = 'Created'
        returning t.*
    ), revoked as (
        update task t
           set invocation_id = gen_random_uuid(),
               disowned      = coalesce(t.disowned, t.invocation_id)
         where t.run_day = any(days) and t.host_id = p_host and t.lifecycle = 'InProgress'
        returning t.*
    ), updated_target as (
        update target_execution x
           set wait_reason = 'HostLost'
          from revoked t
         where x.run_day = any(days)
           and (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
               = (t.run_day, t.job_execution_id, t.step_id, t.ordinal)
    )
    select t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt, t.invocation_id,
           coalesce(t.disowned, t.invocation_id), t.lifecycle, t.backend_pid,
           -- What is known from this attempt's commit, or an earlier one, about a script that is not sent again.
           coalesce((select x.checkpoint ->> 'script' from target_execution x
                      where (x.run_day, x.job_execution_id, x.step_id, x.ordinal)
                            = (t.run_day, t.job_execution_id, t.step_id, t.ordinal) limit 1), t.xact_id),
           d.server_id, d.database_name, c.credential_id, c.row_version, t.start_time, coalesce((s.options ->> 'idempotent')::boolean, false),
           coalesce(s.options ->> 'guard', 'false') <> 'false', coalesce(s.options ->> 'transaction', 'auto'),
           s.options ? 'verify', s.output_type is not null
      from (select * from deleted union all select * from revoked) t
     cross join lateral (select r.* from job_execution r where r.job_execution_id = t.job_execution_id limit 1) r
     cross join lateral (
           select s.* from job_step s
            where (s.job_id, s.version, s.step_id) = (r.job_id, r.job_version, t.step_id) limit 1) s
     cross join lateral (
           select d.* from step_execution e, snapshot_target d
            where (e.run_day, e.job_execution_id, e.step_id) = (t.run_day, t.job_execution_id, t.step_id)
              and (d.snapshot_id, d.ordinal) = (e.snapshot_id, t.ordinal) limit 1) d
      left join lateral (
           select c.credential_id, c.row_version from credential c
            where c.credential_id = coalesce(s.credential_id, d.credential_id, (
                      select n.credential_id from credential n, server_directory v
                       where v.server_id = d.server_id and lower(n.name) = lower(v.job_credential))) limit 1) c on true
     order by t.run_day, t.job_execution_id, t.step_id, t.ordinal;
end $$;
comment on function jobs_internal.revoke_host_tasks(bigint, uuid) is
    'Revokes the tasks of a lost host, so that its reports are refused. Reservations are deleted. Attempts that may '
    'be running get a new invocation and are returned with the old one, by which the session at the target is '
    'found.';
