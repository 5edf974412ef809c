-- for: agent
create or replace function jobs_internal.put_credential(p_name text, p_doc jsonb, p_condition jsonb) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    old_version bigint;
    named constant text[] := case when p_doc ? 'servers' then array(select jsonb_array_elements_text(p_doc -> 'servers')) end;
begin
    perform lock_name('credential', p_name);
    select c.row_version into old_version from credential c where lower(c.name) = lower(p_name) for no key update;
    perform check_condition(p_condition, old_version);
    if old_version is null then
        perform sp_add_credential(p_name, p_doc ->> 'username', nullif(p_doc ->> 'secret', ''), named);
    else
        perform sp_update_credential(p_name, coalesce(p_doc ->> 'username', ''), nullif(p_doc ->> 'secret', ''), named);
    end if;
    return jsonb_build_object('created', old_version is null, 'item', get_item('credentials', array[p_name]));
end $$;
comment on function jobs_internal.put_credential(text, jsonb, jsonb) is
    'Creates or replaces a credential; without a secret the old one is kept, and without servers the old list.';
