-- for: owner
create or replace function jobs_internal.delete_orphans(p_before timestamptz) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    bite constant integer := 20000;
    forgotten integer;
    gone uuid;
    rows integer;
begin
    with old as (
        select s.snapshot_id, s.targets
          from snapshot s
         where s.made_at < p_before
           and not exists (select from step_execution e where e.snapshot_id = s.snapshot_id)
         order by s.made_at
         limit 500
    ), few as (
        select o.snapshot_id, sum(o.targets) over (order by o.snapshot_id) - o.targets as before from old o
    )
    delete from snapshot s using few f where s.snapshot_id = f.snapshot_id and f.before < bite;
    get diagnostics forgotten = row_count;
    for gone in
        select j.job_id
          from job j
         where j.deleted_at < p_before
           and not exists (select from job_execution x where x.job_id = j.job_id)
         limit 50
    loop
        delete from target_ledger
         where ctid = any(array(select l.ctid from target_ledger l where l.job_id = gone limit bite));
        get diagnostics rows = row_count;
        forgotten := forgotten + 1;
        exit when rows = bite;
        delete from job j where j.job_id = gone;
    end loop;
    return forgotten;
end $$;
comment on function jobs_internal.delete_orphans(timestamptz) is
    'Snapshots that no step names and deleted jobs without a run, from before then: a bite of them; 0 = none is left.';
