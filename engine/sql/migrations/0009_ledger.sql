-- expand: the ledger follows its job by a trigger; a foreign key asked for the job once for every result
alter table jobs_internal.target_ledger drop constraint target_ledger_job_id_fkey;
create function jobs_internal.forget_outcomes() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    delete from target_ledger l using gone where l.job_id = gone.job_id;
    return null;
end $$;
comment on function jobs_internal.forget_outcomes() is 'With a job its last outcomes go; only a job without a run goes.';
create trigger a_job_takes_its_outcomes_along after delete on jobs_internal.job
    referencing old table as gone for each statement execute function jobs_internal.forget_outcomes();
