-- for: engine
create or replace function jobs_internal.group_document(p_group text) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    root target_group;
begin
    select * into root from target_group g where lower(g.name) = lower(p_group);
    if not found and p_group is not null then
        raise exception 'target group "%" was not found', p_group using errcode = 'MU010';
    end if;
    return resolution_document(coalesce(root.target_group_id, '00000000-0000-0000-0000-000000000000'),
                               group_members(root.target_group_id));
end $$;
comment on function jobs_internal.group_document(text) is
    'All that resolving a group needs, as resolution_document returns it. Without a group: the servers, for targets '
    'that a caller named.';
