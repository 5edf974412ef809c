-- for: owner
create or replace function jobs_internal.end_canceled(
    p_day date, p_run uuid, p_step_id integer, p_ordinals integer[]
) returns setof integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    now constant timestamptz := clock_timestamp();
    ended bigint;
begin
    -- The day is also compared by >=, so that the planner sees the primary key as the only short way.
    return query
    with target as materialized (
        select p_day as d, p_run as r, p_step_id as s, o from unnest(p_ordinals) o
    )
    update target_execution x
       set lifecycle           = 'Canceled',
           cancel_requested_at = coalesce(x.cancel_requested_at, now),
           end_time            = now,
           not_before          = null,
           wait_reason         = null,
           end_reason          = 'Canceled',
           last_message        = concat_ws(' ',
               case when x.attempts > 0 then 'Canceled while it waited for its next attempt.'
                    else 'Canceled before it started.' end,
               'Last error: ' || nullif(x.last_message, ''))
      from target g
     where x.run_day >= p_day
       and (x.run_day, x.job_execution_id, x.step_id, x.ordinal) = (g.d, g.r, g.s, g.o)
       and x.end_time is null
    returning x.ordinal;
    get diagnostics ended = row_count;
    perform write_target_event(p_run, p_step_id, 'Canceled', ended);
end $$;
comment on function jobs_internal.end_canceled(date, uuid, integer, integer[]) is
    'Ends the unfinished ones of these targets as Canceled, with their last error in the message, and returns them; '
    'the caller has made sure that no attempt runs there.';
