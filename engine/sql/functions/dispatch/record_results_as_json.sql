-- for: owner
create or replace function jobs_internal.record_results_as_json(p_results jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
                   'i', t.invocation_id, 'l', t.lifecycle, 'a', t.attempts, 'b', extract(epoch from t.not_before),
                   'u', extract(epoch from t.deadline), 'n', t.cancel_method, 'k', 'result')), '[]')
          from record_results(p_results) t);
end $$;
comment on function jobs_internal.record_results_as_json(jsonb) is
    'Records the outcome of attempts and returns it as the core reads completions.';
