-- for: owner
create or replace function jobs_internal.run_targets(p_run jobs_internal.job_execution) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    most_counted constant integer := 10000;
    targets bigint;
    rows bigint;
begin
    if p_run.end_time is not null or p_run.start_time is null then
        return p_run.target_counts;
    end if;
    select max(n.targets), sum(n.targets) into targets, rows
      from step_execution s
      join snapshot n on n.snapshot_id = s.snapshot_id
     where (s.run_day, s.job_execution_id) = (p_run.run_day, p_run.job_execution_id);
    return case when rows <= most_counted then count_targets(p_run)
                when targets is not null then jsonb_build_object('total', targets) end;
end $$;
comment on function jobs_internal.run_targets(jobs_internal.job_execution) is
    'Counts of the targets of a run: stored for one that has ended; counted for a live one, unless it has so many targets that '
    'lists would be slow, of which only the total is returned.';
