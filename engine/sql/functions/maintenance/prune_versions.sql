-- for: owner
create or replace function jobs_internal.prune_versions() returns integer
language plpgsql security definer
set search_path = jobs, jobs_internal, pg_temp
set lock_timeout = '1s'
as $$
declare
    system record;
    old integer[];
    texts bytea[];
    deleted integer := 0;
begin
    for system in
        select j.job_id, least(j.version, coalesce((select x.job_version from job_execution x
                                                     where x.job_id = j.job_id
                                                     order by x.create_time limit 1), j.version)) as oldest
          from job j
         where j.system
    loop
        old := array(select v.version from job_version v
                      where v.job_id = system.job_id and v.version < system.oldest order by v.version limit 500);
        continue when old = '{}';
        -- Transactions that write a step wait, so that no text is deleted that a new step names.
        lock table script in share row exclusive mode;
        texts := array(select distinct s.script_hash from job_step s
                        where s.job_id = system.job_id and s.version = any(old));
        delete from job_version v where v.job_id = system.job_id and v.version = any(old);
        delete from script c
         where c.script_hash = any(texts)
           and not exists (select from job_step s where s.script_hash = c.script_hash);
        deleted := deleted + cardinality(old);
    end loop;
    return deleted;
exception when lock_not_available then
    return 0;
end $$;
comment on function jobs_internal.prune_versions() is
    'Deletes a batch of queries of the job "adhoc" that no run names any more, and their texts; returns 0 when none '
    'is left.';
