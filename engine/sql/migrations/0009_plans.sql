-- expand: plans; runs on chosen targets, with a limit and other values of step options
drop function if exists jobs_internal.rerun_targets(bigint, uuid, integer);
drop function if exists jobs_internal.live_runs(bigint, uuid[]);
drop function if exists jobs.sp_start_job(text, uuid);

alter table jobs_internal.rerun_target rename to chosen_target;
alter index jobs_internal.rerun_target_pkey rename to chosen_target_pkey;
comment on table jobs_internal.chosen_target is
    'The targets of a run that does not resolve its target groups: copied from the snapshots of the run that it repeats '
    'or of its plan, or named by the caller, who may name a whole server.';
comment on column jobs_internal.chosen_target.job_execution_id is 'The run.';
comment on column jobs_internal.chosen_target.step_id is
    'The step, in the version of the run; 1 for targets that the caller named, since they are those of every step.';

alter table jobs_internal.job_execution
    add constraint only_a_plan_has_a_plan check ((origin = 'plan') = (plan_of is not null));
create unique index a_plan_is_started_once on jobs_internal.job_execution (plan_of) where plan_of is not null;

-- Queries over named targets need no group.
alter table jobs_internal.job_step
    alter column target_group_id drop not null,
    alter column target_group_name drop not null,
    add constraint a_group_has_id_and_name check ((target_group_id is null) = (target_group_name is null));
comment on column jobs_internal.job_step.target_group_id is 'The group; null: each run names its targets.';

alter table jobs_internal.request
    drop constraint a_request_kind_is_known,
    add constraint a_request_kind_is_known check (kind in ('resolve', 'why', 'plan'));

create table jobs_internal.plan (
    plan_id     uuid primary key,
    job_id      uuid not null,
    job_version integer not null,
    document    jsonb not null,
    created_by  text not null,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null default clock_timestamp() + interval '72 hours',
    foreign key (job_id, job_version) references jobs_internal.job_version on delete cascade
);
create index plan_by_version on jobs_internal.plan (job_id, job_version);
create index plan_by_expiry on jobs_internal.plan (expires_at);
comment on table jobs_internal.plan is 'What a start of a job would run, stored without starting it.';
comment on column jobs_internal.plan.plan_id is 'The request to the engine that made it.';
comment on column jobs_internal.plan.job_id is 'The job.';
comment on column jobs_internal.plan.job_version is 'The version that a run of the plan has.';
comment on column jobs_internal.plan.document is 'For people: targets, what is left out, budgets and durations of each step.';
comment on column jobs_internal.plan.created_by is 'Who asked for it.';
comment on column jobs_internal.plan.created_at is 'When its targets were resolved.';
comment on column jobs_internal.plan.expires_at is 'Not started after that; maintenance then deletes it.';

create table jobs_internal.plan_snapshot (
    plan_id     uuid not null references jobs_internal.plan on delete cascade,
    step_id     integer not null,
    snapshot_id uuid not null references jobs_internal.snapshot,
    primary key (plan_id, step_id)
);
create index plan_snapshot_by_snapshot on jobs_internal.plan_snapshot (snapshot_id);
comment on table jobs_internal.plan_snapshot is 'The targets of the steps of a plan. A step whose targets could not be resolved has none.';
comment on column jobs_internal.plan_snapshot.plan_id is 'The plan.';
comment on column jobs_internal.plan_snapshot.step_id is 'The step, in the version of the plan.';
comment on column jobs_internal.plan_snapshot.snapshot_id is 'Its targets.';
