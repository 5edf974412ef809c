-- for: owner
create or replace function jobs_internal.merge_patch(p_old jsonb, p_patch jsonb) returns jsonb
language plpgsql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    merged jsonb := case when jsonb_typeof(p_old) = 'object' then p_old else '{}' end;
    field record;
begin
    if jsonb_typeof(p_patch) <> 'object' then
        return p_patch;
    end if;
    for field in select e.key, e.value from jsonb_each(p_patch) e loop
        merged := case when field.value = 'null' then merged - field.key
                       else merged || jsonb_build_object(field.key, merge_patch(merged -> field.key, field.value)) end;
    end loop;
    return merged;
end $$;
comment on function jobs_internal.merge_patch(jsonb, jsonb) is
    'JSON merge-patch: null removes, objects merge, everything else replaces.';
