-- for: owner
create or replace function jobs_internal.lock_group(p_name text) returns jobs_internal.target_group
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    locked target_group;
begin
    select * into locked from target_group g where lower(g.name) = lower(p_name) for no key update;
    if not found then
        perform raise_error('MU010', 'target_group_name', format('target group "%s" was not found', p_name));
    end if;
    return locked;
end $$;
comment on function jobs_internal.lock_group(text) is 'The target group, locked until the transaction ends.';
