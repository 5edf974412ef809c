-- for: owner
create or replace function jobs_internal.lock_name(p_kind text, p_name text) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    locked constant text := p_kind || ' ' || lower(p_name);
begin
    -- An uncommitted row makes every other insert of its name wait, even after it is deleted.
    insert into name_lock (name) values (locked);
    delete from name_lock n where n.name = locked;
end $$;
comment on function jobs_internal.lock_name(text, text) is
    'One transaction at a time per name, even while no object has the name: the second transaction finds what the first '
    'one created.';
