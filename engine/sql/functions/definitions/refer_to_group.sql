-- for: owner
create or replace function jobs_internal.refer_to_group(
    p_name text, p_column text, out target_group_id uuid, out name text
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    select g.target_group_id, g.name into target_group_id, name
      from target_group g where lower(g.name) = lower(p_name) for key share;
    if not found then
        perform raise_error('MU012', p_column, case when p_name is null then p_column || ' is needed'
                                                  else format('target group "%s" was not found', p_name) end);
    end if;
end $$;
comment on function jobs_internal.refer_to_group(text, text) is
    'The target group that a definition names; raises when it does not exist.';
