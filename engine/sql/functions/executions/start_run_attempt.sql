-- for: owner
create or replace function jobs_internal.start_run_attempt(p_run uuid) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    next integer;
begin
    update job_execution x
       set attempt = x.attempt + 1
     where x.job_execution_id = p_run
       and x.run_attempts is not null
       and not exists (select from run_attempt a where a.job_execution_id = p_run and a.end_time is null)
    returning x.attempt into next;
    if found then
        insert into run_attempt (job_execution_id, number) values (p_run, next);
    end if;
end $$;
comment on function jobs_internal.start_run_attempt(uuid) is
    'Begins the next attempt of a run, which the caller has locked, unless one runs or the run has no attempts.';
