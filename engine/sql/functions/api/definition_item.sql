-- for: owner
create or replace function jobs_internal.definition_item(
    p_path text[], p_uid uuid, p_row_version bigint, p_created_by text, p_created_at timestamptz, p_modified_by text,
    p_modified_at timestamptz, p_properties jsonb
) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return jsonb_build_object(
        'name', p_path[cardinality(p_path)], 'uid', p_uid, 'rowVersion', p_row_version, 'createdBy', p_created_by,
        'createdAt', iso_time(p_created_at), 'modifiedBy', p_modified_by, 'modifiedAt', iso_time(p_modified_at),
        'path', to_jsonb(p_path), 'properties', p_properties);
end $$;
comment on function jobs_internal.definition_item(text[], uuid, bigint, text, timestamptz, text, timestamptz, jsonb) is
    'A definition as the node agent reads it.';
