-- for: admin
create or replace function jobs.sp_delete_jobstep(
    job_name text, step_id integer default null, step_name text default null, out job_version integer
)
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    edited constant job := lock_job(job_name);
    gone constant job_step := find_jobstep(edited, step_id, step_name);
begin
    job_version := new_version(edited, gone.step_id, null);
    perform write_audit('sp_delete_jobstep', jsonb_build_object(
        'job_name', edited.name, 'step_name', gone.name, 'step_id', gone.step_id, 'job_version', job_version));
end $$;
comment on function jobs.sp_delete_jobstep(text, integer, text) is
    'Creates a version of the job without the step; the following steps move up. Running executions keep their '
    'version.';
