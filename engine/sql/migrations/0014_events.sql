-- expand: events of runs and schedules, webhooks with their deliveries, schedules that are disabled after failures
create table jobs_internal.outbox (
    entry            bigint generated always as identity primary key,
    kind             text not null,
    job_id           uuid,
    job_execution_id uuid,
    notifications    text[] not null default '{}',
    payload          jsonb not null,
    created_at       timestamptz not null default clock_timestamp()
);
comment on table jobs_internal.outbox is
    'Events that have no number yet. A row is written by the transaction that makes the change; publish_events numbers '
    'the rows of committed transactions and moves them to event.';
comment on column jobs_internal.outbox.entry is
    'Order of writing. Not an order of commits: a reader that resumes after an entry could miss rows.';
comment on column jobs_internal.outbox.kind is 'As in event.';
comment on column jobs_internal.outbox.job_id is 'The job.';
comment on column jobs_internal.outbox.job_execution_id is 'The run; null for an event of a job or schedule.';
comment on column jobs_internal.outbox.notifications is 'As in event.';
comment on column jobs_internal.outbox.payload is 'As in event.';
comment on column jobs_internal.outbox.created_at is 'Time of the change.';

create table jobs_internal.event (
    number           bigint primary key,
    event_id         uuid not null default gen_random_uuid(),
    kind             text not null,
    job_id           uuid,
    job_execution_id uuid,
    notifications    text[] not null,
    payload          jsonb not null,
    created_at       timestamptz not null
);
create index event_by_run on jobs_internal.event (job_execution_id, number) where job_execution_id is not null;
comment on table jobs_internal.event is
    'Events by number. A number is visible only after all smaller ones, so a reader resumes after the last number that it '
    'has read and misses none.';
comment on column jobs_internal.event.number is 'Position in the order of events of the account, from 1.';
comment on column jobs_internal.event.event_id is 'Identifies the event for receivers of webhooks.';
comment on column jobs_internal.event.kind is 'runStarted, runWaiting, runEnded, stepStarted, stepEnded, waveStarted, stepHalted, '
    'stepResumed, targetsEnded, targetsRetried, slotLate, slotMissed, autoDisableWarning, autoDisabled or test.';
comment on column jobs_internal.event.job_id is 'The job.';
comment on column jobs_internal.event.job_execution_id is 'The run; null for an event of a job or schedule.';
comment on column jobs_internal.event.notifications is
    'The events of webhooks that it is: failed, succeeded, recovered, late, missed, halted, autoDisableWarning, autoDisabled.';
comment on column jobs_internal.event.payload is 'Details, as clients read them.';
comment on column jobs_internal.event.created_at is 'Time of the change.';

create table jobs_internal.event_counter (
    only_row      boolean primary key default true,
    last_number   bigint not null default 0,
    pruned_number bigint not null default 0,
    constraint there_is_one_event_counter check (only_row)
);
insert into jobs_internal.event_counter default values;
comment on table jobs_internal.event_counter is
    'One row. publish_events holds its lock until its transaction ends, so numbers are committed in their order.';
comment on column jobs_internal.event_counter.only_row is 'Always true.';
comment on column jobs_internal.event_counter.last_number is 'The last number that was given.';
comment on column jobs_internal.event_counter.pruned_number is 'Events up to this number may have been deleted.';

create table jobs_internal.webhook (
    webhook_id   uuid primary key default gen_random_uuid(),
    name         text not null,
    url          text not null,
    secret       text not null,
    events       text[] not null,
    jobs         text[] not null default '{}',
    enabled      boolean not null default true,
    max_attempts integer not null default 8,
    row_version  bigint not null default nextval('jobs_internal.row_version'),
    created_by   text not null,
    created_at   timestamptz not null default clock_timestamp(),
    modified_by  text not null,
    modified_at  timestamptz not null default clock_timestamp(),
    constraint a_webhook_secret_is_sealed check (secret like 'sealed:%'),
    constraint a_webhook_event_is_known check (cardinality(events) > 0 and events <@ array[
        'failed', 'succeeded', 'recovered', 'late', 'missed', 'halted', 'autoDisableWarning', 'autoDisabled']),
    constraint webhook_attempts_are_limited check (max_attempts between 1 and 20)
);
create unique index a_webhook_name_is_taken_once on jobs_internal.webhook (lower(name));
comment on table jobs_internal.webhook is 'Receivers of notifications.';
comment on column jobs_internal.webhook.webhook_id is 'Stays while the webhook exists.';
comment on column jobs_internal.webhook.name is 'Unique without regard to case.';
comment on column jobs_internal.webhook.url is 'An http or https URL that receives POST requests.';
comment on column jobs_internal.webhook.secret is 'Key of the signature, sealed for the account.';
comment on column jobs_internal.webhook.events is 'The notifications that it receives.';
comment on column jobs_internal.webhook.jobs is 'Names of the jobs that it is for, without regard to case; empty = all jobs.';
comment on column jobs_internal.webhook.enabled is 'Whether new events are delivered to it.';
comment on column jobs_internal.webhook.max_attempts is 'After so many failed attempts a delivery is a dead letter.';
comment on column jobs_internal.webhook.row_version is 'The ETag.';
comment on column jobs_internal.webhook.created_by is 'The user who created it.';
comment on column jobs_internal.webhook.created_at is 'When it was created.';
comment on column jobs_internal.webhook.modified_by is 'The user who changed it last.';
comment on column jobs_internal.webhook.modified_at is 'When it was changed last.';

create table jobs_internal.webhook_delivery (
    webhook_id       uuid not null references jobs_internal.webhook on delete cascade,
    number           bigint not null references jobs_internal.event on delete cascade,
    status           text not null default 'Pending',
    attempts         integer not null default 0,
    not_before       timestamptz not null default clock_timestamp(),
    last_attempt_at  timestamptz,
    last_status_code integer,
    last_error       text,
    primary key (webhook_id, number),
    constraint a_delivery_status_is_known check (status in ('Pending', 'Delivered', 'Failed'))
);
create index pending_delivery on jobs_internal.webhook_delivery (webhook_id, not_before) where status = 'Pending';
create index webhook_delivery_by_event on jobs_internal.webhook_delivery (number);
comment on table jobs_internal.webhook_delivery is
    'One row for each webhook and event that match, written by the transaction that numbers the event.';
comment on column jobs_internal.webhook_delivery.webhook_id is 'The receiver.';
comment on column jobs_internal.webhook_delivery.number is 'The event.';
comment on column jobs_internal.webhook_delivery.status is
    'Pending until the receiver has answered 2xx (Delivered) or the attempts are used up (Failed: a dead letter).';
comment on column jobs_internal.webhook_delivery.attempts is 'Attempts that have ended; a replay counts from 0.';
comment on column jobs_internal.webhook_delivery.not_before is 'When the next attempt may begin.';
comment on column jobs_internal.webhook_delivery.last_attempt_at is 'When the last attempt ended.';
comment on column jobs_internal.webhook_delivery.last_status_code is 'HTTP status of the last answer.';
comment on column jobs_internal.webhook_delivery.last_error is 'Why the last attempt failed.';

create table jobs_internal.job_health (
    job_id      uuid primary key references jobs_internal.job on delete cascade,
    failures    integer not null,
    since       timestamptz not null,
    warned_at   timestamptz,
    disabled_at timestamptz,
    constraint a_failing_job_has_failures check (failures > 0)
);
comment on table jobs_internal.job_health is 'Jobs whose last run failed; a success and enabling the schedule delete the row.';
comment on column jobs_internal.job_health.job_id is 'The job.';
comment on column jobs_internal.job_health.failures is 'Runs in a row that ended as Failed or TimedOut.';
comment on column jobs_internal.job_health.since is 'End of the last success; without one, creation of the first failed run.';
comment on column jobs_internal.job_health.warned_at is 'When the warning was written.';
comment on column jobs_internal.job_health.disabled_at is 'When the schedule was disabled because of the failures.';

alter table jobs_internal.job add column auto_disable jsonb;
comment on column jobs_internal.job.auto_disable is
    'When the schedule is disabled after failures: failures, days, warningFailures, warningDays; null = as the account says.';
alter table jobs_internal.instance add column auto_disable jsonb;
comment on column jobs_internal.instance.auto_disable is 'The same for jobs that do not say it; null = never.';

drop function if exists jobs_internal.sync_directory(bigint, jsonb, integer);
drop function if exists jobs_internal.sync_directory(bigint, jsonb, integer, jsonb);
drop function if exists jobs.sp_add_job(text, text, boolean, text, integer, timestamptz, timestamptz, text, text, text,
                                        integer, text, boolean, integer, text, jsonb, integer, jsonb);
drop function if exists jobs.sp_update_job(text, text, text, boolean, text, integer, timestamptz, timestamptz, text, text,
                                           text, integer, text, boolean, integer, text, jsonb, integer, jsonb);
drop function if exists jobs.sp_add_job(text, text, boolean, text, integer, timestamptz, timestamptz, text, text, text,
                                        integer, text, boolean, integer, text, jsonb, integer);
drop function if exists jobs.sp_update_job(text, text, text, boolean, text, integer, timestamptz, timestamptz, text, text,
                                           text, integer, text, boolean, integer, text, jsonb, integer);

-- The triggers are here and what they do is in functions/executions, where it can change.
create function jobs_internal.run_changed() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    perform write_run_event(old, new);
    return null;
end $$;
comment on function jobs_internal.run_changed() is 'Calls write_run_event.';
create trigger a_run_writes_events after update of lifecycle on jobs_internal.job_execution
    for each row when (old.lifecycle is distinct from new.lifecycle and new.origin <> 'system')
    execute function jobs_internal.run_changed();

create function jobs_internal.step_changed() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    perform write_step_event(case when tg_op = 'UPDATE' then old end, new);
    return null;
end $$;
comment on function jobs_internal.step_changed() is 'Calls write_step_event.';
create trigger a_new_step_writes_an_event after insert on jobs_internal.step_execution
    for each row execute function jobs_internal.step_changed();
create trigger a_step_writes_events after update of wave, halted_at, end_time on jobs_internal.step_execution
    for each row when ((old.wave, old.halted_at, old.end_time) is distinct from (new.wave, new.halted_at, new.end_time))
    execute function jobs_internal.step_changed();

create function jobs_internal.slots_decided() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    -- One event for each job, however many slots were missed.
    insert into outbox (kind, job_id, job_execution_id, notifications, payload)
    select s.kind, s.job_id, min(s.job_execution_id::text)::uuid, array[s.notification],
           jsonb_strip_nulls(jsonb_build_object(
               'jobName', j.name, 'count', count(*), 'firstSlot', min(s.slot), 'lastSlot', max(s.slot),
               'reason', min(s.reason),
               'lateSeconds', case s.kind when 'slotLate' then
                   round(extract(epoch from max(s.decided_at - s.slot)), 1) end))
      from (select n.*, case n.outcome when 'missed' then 'slotMissed' else 'slotLate' end as kind,
                   case n.outcome when 'missed' then 'missed' else 'late' end as notification
              from new_slots n
             where n.outcome = 'missed'
                or n.outcome = 'fired' and n.decided_at > n.slot + interval '1 minute') s
      join job j on j.job_id = s.job_id
     group by s.kind, s.job_id, s.notification, j.name;
    return null;
end $$;
comment on function jobs_internal.slots_decided() is
    'Writes events about slots that were missed, or fired more than a minute late.';
create trigger slots_write_events after insert on jobs_internal.slot
    referencing new table as new_slots
    for each statement execute function jobs_internal.slots_decided();
