-- for: owner
create or replace function jobs_internal.get_execution(p_kind text, p_path text[]) returns jsonb
language plpgsql stable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
begin
    return show_execution(p_kind, p_path, false);
end $$;
comment on function jobs_internal.get_execution(text, text[]) is
    'A run, a step of it, a target of the step or an attempt on it, by its path; not of deleted jobs.';
