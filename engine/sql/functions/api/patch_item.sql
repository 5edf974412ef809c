-- for: agent
create or replace function jobs_internal.patch_item(p_kind text, p_path text[], p_patch jsonb, p_condition jsonb)
returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    merged jsonb;
begin
    perform lock_job(p_path[1]);
    merged := merge_patch(get_item(p_kind, p_path) -> 'properties', p_patch);
    case p_kind
    when 'jobs' then
        return put_job(p_path[1], merged, p_condition);
    when 'jobs/steps' then
        return put_step(p_path[1], p_path[2], merged, p_condition);
    end case;
end $$;
comment on function jobs_internal.patch_item(text, text[], jsonb, jsonb) is
    'Changes the fields of a job or a step that the document contains; the document is like those of put_job and '
    'put_step.';
