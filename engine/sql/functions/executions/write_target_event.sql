-- for: owner
create or replace function jobs_internal.write_target_event(
    p_run uuid, p_step_id integer, p_lifecycle text, p_number bigint
) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_number > 0 then
        insert into outbox (kind, job_id, job_execution_id, payload)
        select 'targetsEnded', x.job_id, p_run,
               jsonb_build_object('stepId', p_step_id, 'counts', jsonb_build_object(p_lifecycle, p_number))
          from job_execution x
         where x.job_execution_id = p_run;
    end if;
end $$;
comment on function jobs_internal.write_target_event(uuid, integer, text, bigint) is
    'Writes one event about targets of a step that ended together without an attempt.';
