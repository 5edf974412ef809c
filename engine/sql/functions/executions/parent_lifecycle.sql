-- for: owner
create or replace function jobs_internal.parent_lifecycle(p_cancelled boolean, p_counts jsonb) returns text
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return case when p_cancelled and p_counts ? 'Canceled' then 'Canceled'
                when p_counts ? 'Failed' then 'Failed'
                when p_counts ? 'TimedOut' then 'TimedOut'
                when p_counts ? 'Canceled' then 'Canceled'
                when p_counts ?| array['Succeeded', 'SucceededWithSkipped']
                then case when p_counts ?| array['Skipped', 'SucceededWithSkipped'] then 'SucceededWithSkipped'
                          else 'Succeeded' end
                else 'Skipped' end;
end $$;
comment on function jobs_internal.parent_lifecycle(boolean, jsonb) is
    'The lifecycle of a parent whose children have finished, from the number of children of each lifecycle.';
