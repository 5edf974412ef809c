-- for: owner
create or replace function jobs_internal.list_events(
    p_run jobs_internal.job_execution, p_after jsonb, p_top integer
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    run constant uuid := p_run.job_execution_id;
    counter event_counter;
    start bigint;
    missed boolean;
    items jsonb;
    last bigint;
    number integer;
begin
    select * into counter from event_counter;
    -- Without a position: a run's events from the first one on, an account's from now on.
    start := coalesce((p_after ->> 'number')::bigint, case when run is null then counter.last_number else 0 end);
    -- Deleted, or numbered after the backup from which the control database was restored: then from now on.
    missed := p_after is not null and (start < counter.pruned_number or start > counter.last_number);
    start := least(start, counter.last_number);
    select jsonb_agg(event_document(e) order by e.number), max(e.number), count(*)
      into items, last, number
      from (select v.* from event v
             where v.number > start and (run is null or v.job_execution_id = run)
             order by v.number limit p_top) e;
    return jsonb_build_object(
        'items', coalesce(items, '[]'), 'next', jsonb_build_object('number', coalesce(last, start)),
        'missed', missed,
        'last', counter.last_number,
        'ended', run is not null and p_run.end_time is not null and number < p_top
                 and not exists (select from outbox o where o.job_execution_id = run));
end $$;
comment on function jobs_internal.list_events(jobs_internal.job_execution, jsonb, integer) is
    'Events of a run, or of the account if the run is null, after a number; whether events after that number may be '
    'missing, and whether a run has ended and has no more of them.';
