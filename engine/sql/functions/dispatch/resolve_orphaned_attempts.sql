-- for: engine
create or replace function jobs_internal.resolve_orphaned_attempts(p_epoch bigint, p_results jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return record_results_as_json(p_results);
end $$;
comment on function jobs_internal.resolve_orphaned_attempts(bigint, jsonb) is
    'Records what the core found out about attempts of lost hosts, as a host''s own results are recorded; returns '
    'completions.';
