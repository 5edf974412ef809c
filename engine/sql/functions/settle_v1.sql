-- for: engine
create or replace function jobs_internal.settle_v1(p_epoch bigint, p_results jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform fence_v1(p_epoch);
    return tell_results_v1(p_results);
end $$;
comment on function jobs_internal.settle_v1(bigint, jsonb) is
    'What the core found out about tasks of lost hosts, decided as a host''s own results are; told as completions are.';
