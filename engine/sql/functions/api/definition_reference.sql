-- for: owner
create or replace function jobs_internal.definition_reference(p_name text, p_as_given text) returns jsonb
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select case when p_name is not null then jsonb_build_object('name', p_name, 'asGiven', p_as_given) end
$$;
comment on function jobs_internal.definition_reference(text, text) is 'How a document names another definition; null = none.';
