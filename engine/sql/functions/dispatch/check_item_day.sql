-- for: owner
create or replace function jobs_internal.check_item_day(p_day date) returns void
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    if p_day is null then
        raise exception 'an item of a report has no run_day' using errcode = 'MU003';
    end if;
end $$;
comment on function jobs_internal.check_item_day(date) is
    'Refuses the report of a host that names its fields differently: such a host must end, not believe that a start '
    'is recorded.';
