-- expand: attempts of a run: passes over the targets that have not succeeded
alter table jobs_internal.job
    add column run_attempts jsonb,
    add constraint run_attempts_are_an_object check (jsonb_typeof(run_attempts) = 'object');
comment on column jobs_internal.job.run_attempts is
    'Whether its runs have attempts, and their limits and pauses; null = as the account says.';
alter table jobs_internal.instance
    add column run_attempts jsonb not null default '{"enabled": false}',
    add constraint default_run_attempts_are_an_object check (jsonb_typeof(run_attempts) = 'object');
comment on column jobs_internal.instance.run_attempts is
    'Of the account: whether runs of jobs without a rule of their own have attempts, and the defaults of all jobs.';
alter table jobs_internal.job_execution
    add column run_attempts jsonb,
    add constraint rules_of_run_attempts_are_an_object check (jsonb_typeof(run_attempts) = 'object');
comment on column jobs_internal.job_execution.run_attempts is
    'The limits and pauses of its attempts, as they were when the run was created; null = one pass, without attempts.';
comment on column jobs_internal.job_execution.attempt is 'The number of its newest attempt; 0 = the run has none.';
comment on column jobs_internal.job_execution.not_before is 'When its next attempt begins; null unless it waits for it.';

alter table jobs_internal.target_execution
    add column repeatable boolean not null default false;
comment on column jobs_internal.target_execution.repeatable is
    'It has ended as Failed or TimedOut, and the next attempt of the run would take it: its error may be retried, and it is '
    'known that a repetition does no harm.';

create table jobs_internal.run_attempt (
    job_execution_id uuid not null references jobs_internal.job_execution on delete cascade,
    number           integer not null,
    lifecycle        text not null default 'InProgress',
    start_time       timestamptz not null default clock_timestamp(),
    end_time         timestamptz,
    newly_succeeded  integer,
    remaining        integer,
    next_start_time  timestamptz,
    reached_limit    text,
    message          text not null default '',
    primary key (job_execution_id, number),
    constraint run_attempts_are_numbered_from_1 check (number >= 1),
    constraint a_run_attempt_lifecycle_is_known check (lifecycle in ('InProgress', 'Succeeded', 'Failed')),
    constraint an_ended_run_attempt_has_an_end check ((end_time is null) = (lifecycle = 'InProgress')),
    constraint an_ended_run_attempt_has_its_counts check (end_time is null or newly_succeeded is not null),
    constraint only_a_failed_run_attempt_has_a_successor check (next_start_time is null or lifecycle = 'Failed'),
    constraint a_reached_limit_is_known check (reached_limit in
        ('maxSuccessiveWithoutProgress', 'maxWithoutProgress', 'maxWithProgress')),
    constraint a_reached_limit_has_no_successor check (reached_limit is null or next_start_time is null)
);
create unique index one_running_run_attempt on jobs_internal.run_attempt (job_execution_id) where end_time is null;
comment on table jobs_internal.run_attempt is
    'One attempt of a run: a pass over its targets that had not succeeded. The limits count these rows.';
comment on column jobs_internal.run_attempt.job_execution_id is 'The run.';
comment on column jobs_internal.run_attempt.number is 'From 1.';
comment on column jobs_internal.run_attempt.lifecycle is 'InProgress, Succeeded or Failed.';
comment on column jobs_internal.run_attempt.start_time is 'When it began.';
comment on column jobs_internal.run_attempt.end_time is 'When the last of its targets had ended.';
comment on column jobs_internal.run_attempt.newly_succeeded is
    'How many targets succeeded in it; it made progress if there was one.';
comment on column jobs_internal.run_attempt.remaining is 'How many targets another attempt would take.';
comment on column jobs_internal.run_attempt.next_start_time is 'When the next attempt may begin; null = none follows.';
comment on column jobs_internal.run_attempt.reached_limit is 'The limit because of which no further attempt follows.';
comment on column jobs_internal.run_attempt.message is 'For people.';

create trigger a_run_attempt_moves_legally before update of lifecycle on jobs_internal.run_attempt
    for each row when (old.lifecycle <> new.lifecycle and old.end_time is not null)
    execute function jobs_internal.refuse_move();

create function jobs_internal.refuse_attempt() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    -- Locked, so that the run can't end while the attempt is being created.
    perform from job_execution x
      where x.job_execution_id = new.job_execution_id and x.run_attempts is not null and x.end_time is null
        and x.lifecycle <> 'Created' for no key update;
    if not found or new.lifecycle <> 'InProgress' or new.number <> 1 + (
            select count(*) from run_attempt a where a.job_execution_id = new.job_execution_id) then
        raise exception 'attempt % of execution % can''t begin', new.number, new.job_execution_id
            using errcode = 'MU013';
    end if;
    return new;
end $$;
comment on function jobs_internal.refuse_attempt() is
    'An attempt belongs to a run that is in progress and has attempts; they are numbered without gaps.';
create trigger a_run_attempt_follows_the_one_before before insert on jobs_internal.run_attempt
    for each row execute function jobs_internal.refuse_attempt();

create function jobs_internal.check_attempts_of_run() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
declare
    run job_execution;
    running bigint;
begin
    select * into run from job_execution x where x.job_execution_id = new.job_execution_id;
    select count(*) into running from run_attempt a
     where a.job_execution_id = new.job_execution_id and a.end_time is null;
    if run.run_attempts is not null
       and running <> (run.lifecycle in ('InProgress', 'WaitingForChildJobExecutions'))::integer then
        raise exception 'execution % is % and has % running attempts', run.job_execution_id, run.lifecycle, running
            using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.check_attempts_of_run() is
    'At commit, a run with attempts has a running one exactly while it is in progress.';
create constraint trigger a_run_agrees_with_its_attempts after update of lifecycle on jobs_internal.job_execution
    deferrable initially deferred for each row
    when (new.run_attempts is not null and old.lifecycle <> new.lifecycle)
    execute function jobs_internal.check_attempts_of_run();

create function jobs_internal.keep_attempt_rules() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    new.run_attempts := run_attempt_rules(new.job_id);
    return new;
end $$;
comment on function jobs_internal.keep_attempt_rules() is 'A run keeps the rules that hold when it is created.';
create trigger a_run_keeps_the_rules_of_its_attempts before insert on jobs_internal.job_execution
    for each row when (new.origin <> 'system') execute function jobs_internal.keep_attempt_rules();

-- Pending goes to running, running to incomplete and back; only a running run succeeds.
drop trigger a_run_moves_legally on jobs_internal.job_execution;
create trigger a_run_moves_legally before update of lifecycle on jobs_internal.job_execution
    for each row when (old.lifecycle <> new.lifecycle and (old.end_time is not null or new.lifecycle = 'Created'
        or old.lifecycle = 'Created' and new.lifecycle in ('WaitingForRetry', 'Succeeded', 'SucceededWithSkipped')
        or old.lifecycle = 'WaitingForRetry' and new.lifecycle in ('Succeeded', 'SucceededWithSkipped', 'Skipped')))
    execute function jobs_internal.refuse_move();

drop function if exists jobs_internal.live_runs(bigint, uuid[]);
drop function if exists jobs_internal.retry_targets(uuid, integer, integer[]);
drop function if exists jobs_internal.sync_directory(bigint, jsonb, integer);
drop function if exists jobs.sp_add_job(
    text, text, boolean, text, integer, timestamptz, timestamptz, text, text, text, integer, text, boolean, integer, text,
    jsonb, integer);
drop function if exists jobs.sp_update_job(
    text, text, text, boolean, text, integer, timestamptz, timestamptz, text, text, text, integer, text, boolean, integer,
    text, jsonb, integer);
