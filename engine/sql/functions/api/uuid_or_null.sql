-- for: owner
create or replace function jobs_internal.uuid_or_null(p_text text) returns uuid
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end
$$;
comment on function jobs_internal.uuid_or_null(text) is 'The id in a path; null when the text is not an id.';
