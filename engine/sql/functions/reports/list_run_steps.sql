-- for: owner
create or replace function jobs_internal.list_run_steps(
    p_run jobs_internal.job_execution, p_after jsonb, p_top integer, p_filters jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    only_names constant text[] := case when p_filters ? 'only'
                                       then array(select jsonb_array_elements_text(p_filters -> 'only')) end;
    f record;
    page integer[];
begin
    select * into f from execution_filter(p_filters, p_after);
    page := array(
        select s.step_id
          from step_execution s
         where s.run_day = p_run.run_day
           and s.job_execution_id = p_run.job_execution_id
           and s.step_id < coalesce((p_after ->> 'stepId')::integer, 2147483647)
           and s.create_time >= f.since and s.create_time < f.until
           and (f.ended_since is null or s.end_time >= f.ended_since)
           and (f.ended_until is null or s.end_time < f.ended_until)
           and (f.active is null or (s.end_time is null) = f.active)
           and (only_names is null or lower(s.step_name) = any(only_names))
         order by s.step_id desc
         limit p_top + 1 offset f.skip);
    return (
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(step_item(p_run, s) order by s.step_id desc), '[]'),
                   'next', case when cardinality(page) > p_top then jsonb_build_object('stepId', page[p_top]) end)
          from step_execution s
         where s.run_day = p_run.run_day
           and s.job_execution_id = p_run.job_execution_id
           and s.step_id = any(page[:p_top]));
end $$;
comment on function jobs_internal.list_run_steps(jobs_internal.job_execution, jsonb, integer, jsonb) is
    'A page of the steps of a run.';
