-- for: owner
create or replace function jobs_internal.event_document(p_event jobs_internal.event) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return jsonb_strip_nulls(jsonb_build_object(
        'number', p_event.number, 'eventId', p_event.event_id, 'kind', p_event.kind, 'time', iso_time(p_event.created_at),
        'jobExecutionId', p_event.job_execution_id, 'data', p_event.payload));
end $$;
comment on function jobs_internal.event_document(jobs_internal.event) is 'An event as clients read it.';
