-- for: owner
create or replace function jobs_internal.system_job_definitions()
returns table (job_id uuid, name text, description text, interval_type text, interval_count integer, overlap text,
               retention_days integer)
language sql immutable security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
    values ('6d757374-6572-4000-8000-000000000001'::uuid, 'adhoc',
            'Queries that were run without a job of their own.', null, null::integer, 'allow', null::integer),
           ('6d757374-6572-4000-8000-000000000002', 'muster history retention',
            'Forgets runs that are older than their jobs keep them.', 'Days', 1, 'skipExecution', null),
           ('6d757374-6572-4000-8000-000000000003', 'muster partitions',
            'Makes room for the runs of today and tomorrow.', 'Days', 1, 'skipExecution', null),
           ('6d757374-6572-4000-8000-000000000004', 'muster lost tasks',
            'Takes up what hosts left behind that are gone.', 'Minutes', 1, 'skipExecution', 7),
           ('6d757374-6572-4000-8000-000000000005', 'muster statistics',
            'Lets the planner know how large the tables are.', 'Hours', 1, 'skipExecution', 7)
$$;
comment on function jobs_internal.system_job_definitions() is
    'The definitions of the system jobs; those without an interval run only on request.';
