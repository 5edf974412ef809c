-- for: owner
create or replace function jobs_internal.already_recorded(p_results jsonb) returns setof uuid
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return query
    select g.i
      from jsonb_to_recordset(p_results) g (d date, r uuid, s integer, o integer, a integer, i uuid)
     cross join lateral (
           select from task t
            where (t.run_day, t.job_execution_id, t.step_id, t.ordinal, t.attempt) = (g.d, g.r, g.s, g.o, g.a)
              and t.invocation_id = g.i and t.end_time is not null limit 1) t;
end $$;
comment on function jobs_internal.already_recorded(jsonb) is 'The invocations whose outcome is recorded.';
