-- for: engine
create or replace function jobs_internal.resolve_orphaned_attempts(p_epoch bigint, p_results jsonb)
returns jobs_internal.completion_item[]
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    perform check_epoch(p_epoch);
    return array(select c
                   from record_results(
                            array(select r from jsonb_populate_recordset(null::task_result, p_results) r)) c);
end $$;
comment on function jobs_internal.resolve_orphaned_attempts(bigint, jsonb) is
    'Records the outcomes that the core determined for attempts of lost hosts, objects like those of report''s '
    'results; returns them as a completion has them.';
