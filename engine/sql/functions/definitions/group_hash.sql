-- for: owner
create or replace function jobs_internal.group_hash(p_groups jsonb) returns bytea
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select sha256(convert_to(p_groups::text, 'UTF8'))
$$;
comment on function jobs_internal.group_hash(jsonb) is 'Identifies a definition: what group_members returns.';
