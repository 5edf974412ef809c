-- for: engine
create or replace function jobs_internal.reach_step_v1(p_epoch bigint, p_run uuid, p_step_id integer) returns text
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    begun constant text := begin_run_v1(p_epoch, p_run);
begin
    if begun = 'Begun' then
        perform begin_step_v1(p_epoch, p_run, p_step_id);
    end if;
    return begun;
end $$;
comment on function jobs_internal.reach_step_v1(bigint, uuid, integer) is
    'Where the run has begun or begins, it has reached this step; otherwise why it does not, as begin_run_v1 says. Again '
    'is harmless.';
