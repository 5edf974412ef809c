-- expand: a job's priority never had an effect and is refused; what was stored must not be refused with it
update jobs_internal.job set priority = 0 where priority <> 0;
comment on column jobs_internal.job.priority is 'Always 0: no other value is supported by this version.';
