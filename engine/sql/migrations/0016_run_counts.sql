-- expand: what lists of runs show of each: how many of its targets succeeded, and rows affected
alter type jobs_internal.task_result add attribute rows_affected bigint;
comment on column jobs_internal.task_result.rows_affected is
    'Rows that its statements inserted, updated, deleted, merged or copied; null when no statement was of such a kind.';
alter table jobs_internal.target_execution add column rows_affected bigint;
comment on column jobs_internal.target_execution.rows_affected is
    'Of its newest attempt that had such statements: rows inserted, updated, deleted, merged or copied.';
alter table jobs_internal.step_execution add column rows_affected bigint;
comment on column jobs_internal.step_execution.rows_affected is 'Sum of its succeeded targets, written when it ends.';
alter table jobs_internal.job_execution
    add column target_counts jsonb,
    add column rows_affected bigint,
    add constraint target_counts_are_an_object check (jsonb_typeof(target_counts) = 'object');
comment on column jobs_internal.job_execution.target_counts is
    'As count_targets returns them, written when the run ends; null before that, and of runs that are older than this column.';
comment on column jobs_internal.job_execution.rows_affected is 'Sum of its steps, written when it ends.';
