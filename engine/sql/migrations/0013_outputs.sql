-- expand: rows of a step go to an output table; the attempt that has them is known
alter type jobs_internal.dispatched_task add attribute committed_attempt integer;
comment on column jobs_internal.dispatched_task.script_outcome is
    'committed, unknown or verified: what an earlier attempt knows about the script, which this one does not send. It '
    'begins with the verify query, or after verified with the output.';
comment on column jobs_internal.dispatched_task.committed_attempt is
    'The attempt that sent the script: the rows for the output are in its spool file.';
comment on column jobs_internal.target_execution.checkpoint is
    'What is known about a script that is not sent again: script (committed, unknown or verified), and the attempt '
    'that sent it.';

drop function if exists jobs_internal.revoke_host_tasks(bigint, uuid);
drop function if exists jobs_internal.check_supported(jobs_internal.job_step);
