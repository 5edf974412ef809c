-- expand: control of runs: rollouts with halt, gate, resume and abort; reruns
alter table jobs_internal.step_execution
    add column halt_rule text,
    add column approved_wave integer not null default 1,
    add column not_before timestamptz,
    add column resumed_at timestamptz,
    add column aborted_at timestamptz,
    add constraint a_halt_has_a_rule check ((halted_at is null) = (halt_rule is null)),
    add constraint a_halt_rule_is_known check (halt_rule in ('FailureLimit', 'SameError')),
    add constraint a_wave_is_one_of_the_waves check (wave between 1 and waves);
create index step_execution_by_operator on jobs_internal.step_execution (job_execution_id)
    where end_time is null and coalesce(aborted_at, resumed_at) is not null;
comment on column jobs_internal.step_execution.halt_rule is 'FailureLimit or SameError: which limit halted the step.';
comment on column jobs_internal.step_execution.approved_wave is 'The last wave that an operator has opened.';
comment on column jobs_internal.step_execution.not_before is 'When the next wave starts by itself.';
comment on column jobs_internal.step_execution.resumed_at is
    'When an operator last resumed the step: limits count what ended after that.';
comment on column jobs_internal.step_execution.aborted_at is
    'When an operator ended the rollout: no waiting target starts, and no further step.';

alter table jobs_internal.instance
    add column same_error_limit integer not null default 50,
    add constraint a_limit_of_equal_errors_is_not_negative check (same_error_limit >= 0);
comment on column jobs_internal.instance.same_error_limit is
    'So many targets in a row with the same SQLSTATE, which is not retried, and no success halt a step without a '
    'rollout; 0: no limit.';

drop function if exists jobs_internal.plan_step(
    bigint, uuid, integer, uuid, uuid, bytea, bigint, jsonb, text[], text[], text[], text[], text[], text[], jsonb[],
    uuid[], uuid[]);
drop function if exists jobs_internal.sync_directory(bigint, jsonb);
drop function if exists jobs_internal.poll_updates(bigint, uuid[]);
drop function if exists jobs_internal.create_step_execution(jobs_internal.job_execution, integer, uuid);

create table jobs_internal.rerun_target (
    job_execution_id uuid not null references jobs_internal.job_execution on delete cascade,
    step_id          integer not null,
    target_id        uuid not null,
    target_type      text not null,
    server_id        text not null,
    server_name      text not null,
    pool_name        text,
    database_name    text,
    schema_name      text,
    labels           jsonb not null default '{}',
    credential_id    uuid,
    rule             uuid not null,
    primary key (job_execution_id, step_id, target_id)
);
comment on table jobs_internal.rerun_target is
    'The targets of a rerun in the steps that its origin has reached, copied from the snapshots of the origin.';
comment on column jobs_internal.rerun_target.job_execution_id is 'The rerun.';
comment on column jobs_internal.rerun_target.step_id is 'The step, in the version of the rerun.';
comment on column jobs_internal.rerun_target.target_id is 'The target, the same in every run.';
comment on column jobs_internal.rerun_target.target_type is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.server_id is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.server_name is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.pool_name is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.database_name is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.schema_name is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.labels is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.credential_id is 'As in the snapshot.';
comment on column jobs_internal.rerun_target.rule is 'As in the snapshot.';
create index job_execution_by_origin on jobs_internal.job_execution (rerun_of) where rerun_of is not null;

drop function if exists jobs_internal.live_runs(bigint, uuid[]);
