-- for: owner
create or replace function jobs_internal.list_audit(p_after jsonb, p_top integer, p_filters jsonb) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    top constant integer := least(greatest(coalesce(p_top, 100), 1), 1000);
begin
    return (
        with next as (
            select a.*, row_number() over (order by a.audit_id desc) as place
              from (select a.*
                      from audit a
                     where (p_after is null or a.audit_id < (p_after ->> 'id')::bigint)
                       and (p_filters ->> 'door' is null or a.door = p_filters ->> 'door')
                     order by a.audit_id desc
                     limit top + 1) a
        )
        select jsonb_build_object(
                   'items', coalesce(jsonb_agg(jsonb_build_object(
                                'name', n.audit_id::text, 'path', jsonb_build_array(n.audit_id::text), 'properties',
                                jsonb_strip_nulls(jsonb_build_object(
                                    'time', iso_time(n.at), 'action', n.action, 'caller', n.caller, 'login', n.login,
                                    'door', n.door, 'commandId', n.command_id)) || jsonb_build_object('detail', n.detail))
                                order by n.place) filter (where n.place <= top), '[]'),
                   'next', case when count(*) > top then
                               jsonb_build_object('id', min(n.audit_id) filter (where n.place <= top)) end)
          from next n);
end $$;
comment on function jobs_internal.list_audit(jsonb, integer, jsonb) is
    'A page of the audit, the newest first: what was changed, by which login and door.';
