-- for: owner
create or replace function jobs_internal.delete_orphans(p_before timestamptz) returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
as $$
declare
    batch_size constant integer := 20000;
    deleted integer;
    orphan_id uuid;
    rows integer;
begin
    delete from plan p where p.expires_at <= clock_timestamp();
    with old as (
        select s.snapshot_id, s.targets
          from snapshot s
         where s.made_at < p_before
           and not exists (select from step_execution e where e.snapshot_id = s.snapshot_id)
           and not exists (select from plan_snapshot p where p.snapshot_id = s.snapshot_id)
         order by s.made_at
         limit 500
    ), few as (
        select o.snapshot_id, sum(o.targets) over (order by o.snapshot_id) - o.targets as before from old o
    )
    delete from snapshot s using few f where s.snapshot_id = f.snapshot_id and f.before < batch_size;
    get diagnostics deleted = row_count;
    for orphan_id in
        select j.job_id
          from job j
         where j.deleted_at < p_before
           and not exists (select from job_execution x where x.job_id = j.job_id)
         limit 50
    loop
        delete from target_ledger
         where ctid = any(array(select l.ctid from target_ledger l where l.job_id = orphan_id limit batch_size));
        get diagnostics rows = row_count;
        deleted := deleted + 1;
        exit when rows = batch_size;
        delete from job j where j.job_id = orphan_id;
    end loop;
    return deleted;
end $$;
comment on function jobs_internal.delete_orphans(timestamptz) is
    'Deletes expired plans, and a batch of snapshots that no step and no plan names and of deleted jobs without a run, older than the time; returns '
    '0 when none is left.';
