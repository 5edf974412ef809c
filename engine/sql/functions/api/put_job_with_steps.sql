-- for: agent
create or replace function jobs_internal.put_job_with_steps(
    p_name text, p_doc jsonb, p_steps jsonb, p_condition jsonb, p_is_patch boolean
) returns jsonb
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    before integer;
    written jsonb;
    step record;
    extra record;
    edited job;
begin
    perform lock_name('job', p_name);
    select j.version into before from job j
     where lower(j.name) = lower(p_name) and j.deleted_at is null for no key update;
    written := case when p_is_patch then patch_item('jobs', array[p_name], p_doc, p_condition)
                    else put_job(p_name, p_doc, p_condition) end;
    edited := lock_job(p_name);
    -- Before steps are added, so that there are never more than the list and a job may have.
    for extra in select s.name, s.step_id from job_step s
                  where (s.job_id, s.version) = (edited.job_id, edited.version)
                    and not exists (select from jsonb_array_elements(p_steps) e
                                     where lower(e.value ->> 'name') = lower(s.name))
                  order by s.step_id desc loop
        if extra.step_id = 1 then -- its successor becomes the first step; the list says how it advances
            edited := lock_job(p_name);
            perform sp_update_jobstep(p_name, step_name => s.name, options => s.options - 'advance')
               from job_step s
              where (s.job_id, s.version, s.step_id) = (edited.job_id, edited.version, 2)
                and s.options ->> 'advance' = 'perTarget';
        end if;
        perform sp_delete_jobstep(p_name, step_name => extra.name);
    end loop;
    for step in select e.ordinality as place, e.value ->> 'name' as name, e.value - 'name' as doc
                  from jsonb_array_elements(p_steps) with ordinality e loop
        perform put_step(p_name, step.name, step.doc || jsonb_build_object('stepId', step.place), '{}');
    end loop;
    edited := lock_job(p_name);
    -- Only the last of the versions is one that a caller asked for.
    delete from job_version v
     where v.job_id = edited.job_id and v.version > coalesce(before, 0) and v.version < edited.version;
    return written || jsonb_build_object('item', get_item('jobs', array[p_name]));
end $$;
comment on function jobs_internal.put_job_with_steps(text, jsonb, jsonb, jsonb, boolean) is
    'Creates, replaces or patches a job together with all its steps, in the order of the list; steps that it does not '
    'name are removed. No execution can begin in between, and at most one version is added.';
