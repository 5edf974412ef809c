-- for: owner
create or replace function jobs_internal.iso_time(p_time timestamptz) returns text
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select to_jsonb(p_time at time zone 'UTC') #>> '{}' || 'Z'
$$;
comment on function jobs_internal.iso_time(timestamptz) is 'ISO 8601 in UTC, whatever the session''s time zone.';
