-- for: owner
create or replace function jobs_internal.execution_filter(
    p_filters jsonb, p_after jsonb,
    out since timestamptz, out until timestamptz, out ended_since timestamptz, out ended_until timestamptz,
    out active boolean, out skip bigint, out deleted boolean, out lifecycles text[]
)
language sql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    select coalesce(f."createTimeMin", '-infinity'), coalesce(f."createTimeMax", 'infinity'),
           f."endTimeMin", f."endTimeMax", f."isActive",
           case when p_after is null then coalesce(f.skip, 0) else 0 end, coalesce(f."includeDeleted", false),
           f.lifecycle
      from jsonb_to_record(p_filters) f ("createTimeMin" timestamptz, "createTimeMax" timestamptz,
                                         "endTimeMin" timestamptz, "endTimeMax" timestamptz,
                                         "isActive" boolean, skip bigint, "includeDeleted" boolean, lifecycle text[])
$$;
comment on function jobs_internal.execution_filter(jsonb, jsonb) is
    'The filter of a list of executions; the page after another one skips nothing.';
