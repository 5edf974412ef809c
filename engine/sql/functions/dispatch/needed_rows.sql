-- for: engine
create or replace function jobs_internal.needed_rows(
    p_days date[], p_runs uuid[], p_steps integer[], p_ordinals integer[]
) returns boolean[]
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return array(
        select exists (select from target_execution x
                         join step_execution e using (run_day, job_execution_id, step_id)
                        where (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (t.day, t.run, t.step, t.ordinal)
                          and x.lifecycle <> 'Succeeded' and e.end_time is null)
          from unnest(p_days, p_runs, p_steps, p_ordinals) with ordinality t (day, run, step, ordinal, place)
         order by t.place);
end $$;
comment on function jobs_internal.needed_rows(date[], uuid[], integer[], integer[]) is
    'For each of these targets whether its rows may still be written to the output: it has not succeeded, and its step '
    'has not ended.';
