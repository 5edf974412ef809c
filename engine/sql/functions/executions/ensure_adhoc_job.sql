-- for: owner
create or replace function jobs_internal.ensure_adhoc_job() returns jobs_internal.job
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    adhoc job;
begin
    perform lock_name('job', 'adhoc');
    select * into adhoc from job j where lower(j.name) = 'adhoc' and j.deleted_at is null for no key update;
    if not found then
        insert into job (job_id, name, description, system, overlap, created_by, modified_by)
        select s.job_id, s.name, s.description, true, s.overlap, 'muster', 'muster'
          from system_job_definitions() s where s.name = 'adhoc'
        -- A user has renamed or hidden the job, and it is not repaired yet.
        on conflict (job_id) do update
           set name = excluded.name, system = true, overlap = excluded.overlap, deleted_at = null
        returning * into adhoc;
        insert into job_version (job_id, version, created_by) values (adhoc.job_id, adhoc.version, 'muster')
        on conflict do nothing;
    elsif not adhoc.system then
        perform raise_error('MU011', 'job_name', 'the job "adhoc" is not Muster''s own: queries can''t be kept under it',
            'Rename it.');
    elsif adhoc.overlap <> 'allow' then
        update job j set overlap = 'allow' where j.job_id = adhoc.job_id returning * into adhoc;
    end if;
    return adhoc;
end $$;
comment on function jobs_internal.ensure_adhoc_job() is
    'The system job whose runs are queries, locked until the transaction ends; creates it if it is missing. Its runs '
    'never wait for each other.';
