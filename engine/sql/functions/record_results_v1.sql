-- for: owner
create or replace function jobs_internal.record_results_v1(p_results jsonb)
returns table (invocation_id uuid, lifecycle text, attempts integer, not_before timestamptz, needed text)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return query
    select t.invocation_id, t.lifecycle, t.attempts, t.not_before, t.needed from record_results_v2(p_results) t;
end $$;
comment on function jobs_internal.record_results_v1(jsonb) is
    'What record_results_v2 tells, without deadlines.';
