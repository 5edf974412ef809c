-- expand: how due schedules, runs past their time and unused texts are found, and how the Scheduler is woken
create index job_without_next_slot on jobs_internal.job (job_id)
    where enabled and next_slot is null and deleted_at is null and not system;
create index snapshot_by_age on jobs_internal.snapshot (made_at);
create index step_by_script on jobs_internal.job_step (script_hash);
comment on column jobs_internal.job.next_slot is
    'When the engine looks at it next; null = not yet known, infinity = at no time.';

create function jobs_internal.tell_scheduler() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    perform pg_notify('muster_schedule', '');
    return null;
end $$;
comment on function jobs_internal.tell_scheduler() is 'Whoever follows schedules looks at once.';
create trigger a_new_schedule_is_told after insert or update of enabled, next_slot on jobs_internal.job
    for each row when (new.enabled and new.next_slot is null and new.deleted_at is null and not new.system)
    execute function jobs_internal.tell_scheduler();
