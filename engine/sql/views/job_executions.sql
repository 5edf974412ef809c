-- for: reader, operator, admin
create or replace view jobs.job_executions as
select job_execution_id, job_name, job_id, job_version, step_id, is_active, lifecycle, create_time, start_time,
       end_time, current_attempts, current_attempt_start_time, next_attempt_start_time, last_message, target_type, target_id,
       target_group_name, target_server_name, target_database_name, target_schema_name, step_name,
       target_execution_id, phase, wave, wait_reason, end_reason, cancel_requested_at, origin, slot, actor, door
  from jobs_internal.all_job_executions
 where deleted_at is null and origin <> 'system';
comment on view jobs.job_executions is 'Runs, their steps and the targets of those.';
do $$
declare
    remark text;
begin
    for remark in
        select format('comment on column jobs.job_executions.%I is %L',
                      a.attname, col_description(a.attrelid, a.attnum))
          from pg_attribute a
         where a.attrelid = 'jobs_internal.all_job_executions'::regclass
           and a.attnum > 0
           and a.attname <> 'deleted_at'
    loop
        execute remark;
    end loop;
end $$;
