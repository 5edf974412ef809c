-- expand: what the account's people define: credentials, target groups, jobs with their versions and steps
create sequence jobs_internal.row_version as bigint;
comment on sequence jobs_internal.row_version is
    'A number for each change of a definition: no two states of anything ever have the same one.';

create table jobs_internal.name_lock (
    name text primary key
);
comment on table jobs_internal.name_lock is
    'Always empty: lock_name inserts a name and deletes it, and the unique index makes the next inserter wait.';
comment on column jobs_internal.name_lock.name is 'What is locked.';

create table jobs_internal.credential (
    credential_id uuid primary key default gen_random_uuid(),
    name          text not null,
    username      text not null,
    secret        text not null,
    row_version   bigint not null default nextval('jobs_internal.row_version'),
    created_by    text not null,
    created_at    timestamptz not null default clock_timestamp(),
    modified_by   text not null,
    modified_at   timestamptz not null default clock_timestamp(),
    servers       jsonb,
    constraint a_secret_is_sealed_or_a_reference check (secret ~ '^(sealed|env|file|vault):.'),
    constraint a_credential_lists_servers check
        (servers is null or jsonb_typeof(servers) = 'array' and jsonb_array_length(servers) > 0)
);
create unique index a_credential_name_is_taken_once on jobs_internal.credential (lower(name));
comment on table jobs_internal.credential is 'Who logs in at the targets.';
comment on column jobs_internal.credential.credential_id is 'Stays when the credential is changed.';
comment on column jobs_internal.credential.name is 'Unique without regard to case.';
comment on column jobs_internal.credential.username is 'The login; may contain variables such as $(target_database_name).';
comment on column jobs_internal.credential.secret is
    'sealed:… for the account''s key, or a reference env:, file: or vault: that the engine opens. Never plain text.';
comment on column jobs_internal.credential.row_version is 'The ETag.';
comment on column jobs_internal.credential.created_by is 'Who made it.';
comment on column jobs_internal.credential.created_at is 'When it was made.';
comment on column jobs_internal.credential.modified_by is 'Who changed it last.';
comment on column jobs_internal.credential.modified_at is 'When it was changed last.';
comment on column jobs_internal.credential.servers is
    'Servers that it may log in at: serverId, and the endpoint that each had when it was listed; null = any.';

create table jobs_internal.target_group (
    target_group_id uuid primary key default gen_random_uuid(),
    name            text not null,
    row_version     bigint not null default nextval('jobs_internal.row_version'),
    created_by      text not null,
    created_at      timestamptz not null default clock_timestamp(),
    modified_by     text not null,
    modified_at     timestamptz not null default clock_timestamp()
);
create unique index a_target_group_name_is_taken_once on jobs_internal.target_group (lower(name));
comment on table jobs_internal.target_group is 'A rule that yields targets, anew at each run.';
comment on column jobs_internal.target_group.target_group_id is 'Stays when the members change.';
comment on column jobs_internal.target_group.name is 'Unique without regard to case.';
comment on column jobs_internal.target_group.row_version is 'The ETag; changes with the members.';
comment on column jobs_internal.target_group.created_by is 'Who made it.';
comment on column jobs_internal.target_group.created_at is 'When it was made.';
comment on column jobs_internal.target_group.modified_by is 'Who changed it last.';
comment on column jobs_internal.target_group.modified_at is 'When it was changed last.';

create table jobs_internal.target_group_member (
    target_group_id         uuid not null references jobs_internal.target_group on delete cascade,
    target_id               uuid not null default gen_random_uuid(),
    position                integer not null,
    membership_type         text not null default 'Include',
    target_type             text not null,
    server_name             text,
    server_id               text,
    database_name           text,
    elastic_pool_name       text,
    shard_map_name          text,
    schema_pattern          text,
    query                   text,
    nested_group_id         uuid references jobs_internal.target_group,
    nested_group_as_given   text,
    refresh_credential_id   uuid references jobs_internal.credential,
    refresh_as_given        text,
    credential_id           uuid references jobs_internal.credential,
    credential_as_given     text,
    subscription_id         text,
    resource_group_name     text,
    primary key (target_group_id, target_id),
    constraint positions_are_taken_once unique (target_group_id, position),
    constraint a_membership_is_known check (membership_type in ('Include', 'Exclude')),
    constraint a_target_type_is_known check (target_type in
        ('SqlServer', 'SqlElasticPool', 'SqlDatabase', 'SqlShardMap', 'SqlSchema', 'SqlQuery', 'TargetGroup')),
    constraint a_target_names_its_server check ((target_type = 'TargetGroup') = (server_name is null)),
    constraint a_server_name_stands_for_one_server check ((server_name is null) = (server_id is null)),
    constraint a_nested_group_is_named check ((target_type = 'TargetGroup') = (nested_group_id is not null)),
    constraint a_database_is_named check (target_type not in ('SqlDatabase', 'SqlQuery', 'SqlShardMap')
        or database_name is not null),
    constraint a_pool_is_named check ((target_type = 'SqlElasticPool') = (elastic_pool_name is not null)),
    constraint a_shard_map_is_named check ((target_type = 'SqlShardMap') = (shard_map_name is not null)),
    constraint a_schema_has_a_pattern check ((target_type = 'SqlSchema') = (schema_pattern is not null)),
    constraint a_query_is_given check ((target_type = 'SqlQuery') = (query is not null))
);
create unique index a_member_stands_once on jobs_internal.target_group_member (
    target_group_id, membership_type, target_type, coalesce(lower(server_name), ''), coalesce(database_name, ''),
    coalesce(lower(elastic_pool_name), ''), coalesce(shard_map_name, ''), coalesce(schema_pattern, ''),
    md5(coalesce(query, '')), coalesce(nested_group_id, '00000000-0000-0000-0000-000000000000'));
create index member_by_nested_group on jobs_internal.target_group_member (nested_group_id)
    where nested_group_id is not null;
create index member_by_refresh_credential on jobs_internal.target_group_member (refresh_credential_id)
    where refresh_credential_id is not null;
create index member_by_credential on jobs_internal.target_group_member (credential_id)
    where credential_id is not null;
comment on table jobs_internal.target_group_member is 'What a target group takes in or leaves out.';
comment on column jobs_internal.target_group_member.target_group_id is 'The group.';
comment on column jobs_internal.target_group_member.target_id is 'By which the member is deleted.';
comment on column jobs_internal.target_group_member.position is 'Order in which the members were given.';
comment on column jobs_internal.target_group_member.membership_type is 'Include or Exclude; an exclusion wins.';
comment on column jobs_internal.target_group_member.target_type is
    'SqlServer, SqlElasticPool, SqlDatabase, SqlShardMap, SqlSchema, SqlQuery or TargetGroup.';
comment on column jobs_internal.target_group_member.server_name is
    'As given: short name, host name or <name>.database.windows.net; found in the server directory.';
comment on column jobs_internal.target_group_member.server_id is
    'The server that had server_name when the member was written; another one that takes the name is no target.';
comment on column jobs_internal.target_group_member.database_name is
    'The database; of SqlSchema null = every database of the server.';
comment on column jobs_internal.target_group_member.elastic_pool_name is 'The elastic pool.';
comment on column jobs_internal.target_group_member.shard_map_name is
    'The relation that lists server_name, database_name and perhaps schema_name.';
comment on column jobs_internal.target_group_member.schema_pattern is 'LIKE pattern of the schemas that are targets.';
comment on column jobs_internal.target_group_member.query is
    'Yields server_name, database_name and perhaps schema_name; further columns become labels.';
comment on column jobs_internal.target_group_member.nested_group_id is 'The group whose targets these are.';
comment on column jobs_internal.target_group_member.nested_group_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.target_group_member.refresh_credential_id is 'Who lists the databases.';
comment on column jobs_internal.target_group_member.refresh_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.target_group_member.credential_id is
    'Who runs steps on these targets when the step names nobody.';
comment on column jobs_internal.target_group_member.credential_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.target_group_member.subscription_id is 'Of the server; null = the account''s.';
comment on column jobs_internal.target_group_member.resource_group_name is 'Of the server; null = the account''s.';

create table jobs_internal.job (
    job_id                  uuid primary key default gen_random_uuid(),
    name                    text not null,
    description             text not null default '',
    version                 integer not null default 0,
    enabled                 boolean not null default false,
    schedule_type           text not null default 'Once',
    schedule_interval_type  text not null default 'Once',
    schedule_interval_count integer not null default 1,
    schedule_interval       text,
    schedule_cron           text,
    schedule_time_zone      text,
    schedule_start_time     timestamptz not null default '0001-01-01 00:00:00+00',
    schedule_end_time       timestamptz not null default '9999-12-31 11:59:59+00',
    scheduled_since         timestamptz not null default clock_timestamp(),
    next_slot               timestamptz,
    misfire_policy          text not null default 'runOnce',
    misfire_within_seconds  integer,
    overlap                 text not null default 'skipTarget',
    paused                  boolean not null default false,
    priority                integer not null default 0,
    owner                   text,
    labels                  jsonb not null default '{}',
    retention_days          integer,
    system                  boolean not null default false,
    row_version             bigint not null default nextval('jobs_internal.row_version'),
    created_by              text not null,
    created_at              timestamptz not null default clock_timestamp(),
    modified_by             text not null,
    modified_at             timestamptz not null default clock_timestamp(),
    deleted_at              timestamptz,
    constraint a_schedule_type_is_known check (schedule_type in ('Once', 'Recurring')),
    constraint an_interval_type_is_known check
        (schedule_interval_type in ('Once', 'Minutes', 'Hours', 'Days', 'Weeks', 'Months')),
    constraint an_interval_counts check (schedule_interval_count between 1 and 1000000),
    constraint only_once_has_no_interval check
        ((schedule_type = 'Once') = (schedule_interval_type = 'Once' and schedule_cron is null)),
    constraint cron_takes_the_place_of_an_interval check (schedule_cron is null or schedule_interval_type = 'Once'),
    constraint a_time_zone_belongs_to_cron check (schedule_time_zone is null or schedule_cron is not null),
    constraint a_schedule_begins_before_it_ends check (schedule_start_time < schedule_end_time),
    constraint a_misfire_policy_is_known check (misfire_policy in ('runOnce', 'skip')),
    constraint a_misfire_has_a_limit check (misfire_within_seconds >= 0),
    constraint an_overlap_is_known check
        (overlap in ('skipTarget', 'skipExecution', 'queueOne', 'allow', 'cancelPrevious')),
    constraint a_priority_is_small check (priority between -1000 and 1000),
    constraint a_retention_lasts check (retention_days between 1 and 36500),
    constraint job_labels_are_an_object check (jsonb_typeof(labels) = 'object'),
    constraint a_job_version_counts check (version >= 0),
    constraint a_deleted_job_is_never_due check (deleted_at is null or next_slot is null)
);
create unique index a_job_name_is_taken_once on jobs_internal.job (lower(name)) where deleted_at is null;
create index job_by_next_slot on jobs_internal.job (next_slot) where next_slot is not null;
create index job_without_next_slot on jobs_internal.job (job_id)
    where enabled and next_slot is null and deleted_at is null and not system;
comment on table jobs_internal.job is 'A versioned list of steps, and when it runs.';
comment on column jobs_internal.job.job_id is 'Stays when the job is renamed.';
comment on column jobs_internal.job.name is 'Unique without regard to case among the jobs that are there.';
comment on column jobs_internal.job.description is 'For people.';
comment on column jobs_internal.job.version is 'The current one; 0 until there is a step, one more with each change of a step.';
comment on column jobs_internal.job.enabled is 'Whether the schedule counts; a start by hand always works.';
comment on column jobs_internal.job.schedule_type is 'Once or Recurring.';
comment on column jobs_internal.job.schedule_interval_type is 'Once, Minutes, Hours, Days, Weeks or Months.';
comment on column jobs_internal.job.schedule_interval_count is 'How many of them lie between two runs.';
comment on column jobs_internal.job.schedule_interval is 'The ISO 8601 text that REST gave; null = made from type and count.';
comment on column jobs_internal.job.schedule_cron is 'Five fields in the place of an interval.';
comment on column jobs_internal.job.schedule_time_zone is 'IANA name for cron; null = UTC.';
comment on column jobs_internal.job.schedule_start_time is 'No run before.';
comment on column jobs_internal.job.schedule_end_time is 'No run from here on.';
comment on column jobs_internal.job.scheduled_since is
    'When the schedule was enabled or edited last: it never fires for the time before, but for Once.';
comment on column jobs_internal.job.next_slot is
    'When the engine looks at it next; null = not yet known, infinity = at no time.';
comment on column jobs_internal.job.misfire_policy is 'What becomes of a slot that was missed: runOnce or skip.';
comment on column jobs_internal.job.misfire_within_seconds is 'How late a slot may still run; null = the default.';
comment on column jobs_internal.job.overlap is
    'What happens while an earlier run lives: skipTarget, skipExecution, queueOne, allow or cancelPrevious.';
comment on column jobs_internal.job.paused is 'Nothing of it starts; the schedule stays as it is.';
comment on column jobs_internal.job.priority is 'Always 0: no other value is supported by this version.';
comment on column jobs_internal.job.owner is 'Whom to ask.';
comment on column jobs_internal.job.labels is 'For selection.';
comment on column jobs_internal.job.retention_days is 'How long its history is kept; null = the account''s default.';
comment on column jobs_internal.job.system is 'Kept by the Maintainer, not by people.';
comment on column jobs_internal.job.row_version is 'The ETag; changes with the steps too.';
comment on column jobs_internal.job.created_by is 'Who made it.';
comment on column jobs_internal.job.created_at is 'When it was made.';
comment on column jobs_internal.job.modified_by is 'Who changed it last.';
comment on column jobs_internal.job.modified_at is 'When it was changed last.';
comment on column jobs_internal.job.deleted_at is 'Hidden since then, until its history is gone.';

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

create table jobs_internal.job_version (
    job_id     uuid not null references jobs_internal.job on delete cascade,
    version    integer not null,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (job_id, version),
    constraint a_version_counts check (version >= 0)
);
comment on table jobs_internal.job_version is 'Every state that a job''s steps ever had; running executions keep theirs.';
comment on column jobs_internal.job_version.job_id is 'The job.';
comment on column jobs_internal.job_version.version is 'From 0.';
comment on column jobs_internal.job_version.created_by is 'Whose change made it.';
comment on column jobs_internal.job_version.created_at is 'When.';

create table jobs_internal.script (
    script_hash bytea primary key,
    body        text not null,
    constraint a_script_is_known_by_its_digest check (script_hash = sha256(convert_to(body, 'UTF8'))),
    constraint a_script_is_no_larger_than_a_mebibyte check (octet_length(body) between 1 and 1048576)
);
comment on table jobs_internal.script is 'The texts of steps, each kept once however many versions use it.';
comment on column jobs_internal.script.script_hash is 'SHA-256 of the text.';
comment on column jobs_internal.script.body is 'The text.';

create table jobs_internal.job_step (
    job_id                            uuid not null,
    version                           integer not null,
    step_id                           integer not null,
    name                              text not null,
    script_hash                       bytea not null references jobs_internal.script,
    credential_id                     uuid,
    credential_name                   text,
    credential_as_given               text,
    target_group_id                   uuid not null,
    target_group_name                 text not null,
    target_group_as_given             text,
    initial_retry_interval_seconds    integer not null default 1,
    maximum_retry_interval_seconds    integer not null default 120,
    retry_interval_backoff_multiplier real not null default 2.0,
    retry_attempts                    integer not null default 10,
    timeout_seconds                   integer not null default 43200,
    output_type                       text,
    output_credential_id              uuid,
    output_credential_name            text,
    output_credential_as_given        text,
    output_subscription_id            text,
    output_resource_group_name        text,
    output_server_name                text,
    output_database_name              text,
    output_schema_name                text,
    output_table_name                 text,
    max_parallelism                   integer,
    options                           jsonb not null default '{}',
    content_hash                      bytea not null,
    row_version                       bigint not null default nextval('jobs_internal.row_version'),
    created_by                        text not null,
    created_at                        timestamptz not null default clock_timestamp(),
    modified_by                       text not null,
    modified_at                       timestamptz not null default clock_timestamp(),
    primary key (job_id, version, step_id),
    foreign key (job_id, version) references jobs_internal.job_version on delete cascade,
    constraint a_step_counts_from_one check (step_id >= 1),
    constraint a_first_pause_lasts check (initial_retry_interval_seconds between 1 and 2147483),
    constraint a_pause_grows_to_its_maximum check
        (maximum_retry_interval_seconds between initial_retry_interval_seconds and 2147483),
    constraint a_pause_never_shrinks check (retry_interval_backoff_multiplier between 1 and 1000),
    constraint attempts_are_counted check (retry_attempts between 0 and 2147483),
    constraint a_timeout_lasts check (timeout_seconds between 1 and 2147483),
    constraint an_output_is_known check (output_type in ('SqlDatabase')),
    constraint an_output_is_complete check (num_nonnulls(
        output_type, output_server_name, output_database_name, output_schema_name, output_table_name) in (0, 5)),
    constraint parallelism_allows_something check (max_parallelism >= 1),
    constraint options_are_an_object check (jsonb_typeof(options) = 'object')
);
create unique index a_step_name_is_taken_once on jobs_internal.job_step (job_id, version, lower(name));
create index step_by_script on jobs_internal.job_step (script_hash);
comment on table jobs_internal.job_step is 'The steps of each version; a row never changes.';
comment on column jobs_internal.job_step.job_id is 'The job.';
comment on column jobs_internal.job_step.version is 'The version that it belongs to.';
comment on column jobs_internal.job_step.step_id is '1 … n without a gap: the order of the steps.';
comment on column jobs_internal.job_step.name is 'Unique in its version without regard to case.';
comment on column jobs_internal.job_step.script_hash is 'What runs.';
comment on column jobs_internal.job_step.credential_id is 'Who runs it; null = the target''s credential.';
comment on column jobs_internal.job_step.credential_name is 'Its name when the step was written.';
comment on column jobs_internal.job_step.credential_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.job_step.target_group_id is 'Where it runs.';
comment on column jobs_internal.job_step.target_group_name is 'Its name when the step was written.';
comment on column jobs_internal.job_step.target_group_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.job_step.initial_retry_interval_seconds is 'Pause after the first failed attempt.';
comment on column jobs_internal.job_step.maximum_retry_interval_seconds is 'No pause is longer.';
comment on column jobs_internal.job_step.retry_interval_backoff_multiplier is 'By which the pause grows.';
comment on column jobs_internal.job_step.retry_attempts is 'Attempts beyond the first.';
comment on column jobs_internal.job_step.timeout_seconds is 'For one target with all attempts and pauses.';
comment on column jobs_internal.job_step.output_type is 'SqlDatabase, or null = the rows are kept with the attempt only.';
comment on column jobs_internal.job_step.output_credential_id is 'Who writes the output.';
comment on column jobs_internal.job_step.output_credential_name is 'Its name when the step was written.';
comment on column jobs_internal.job_step.output_credential_as_given is 'How REST named it; null = by name.';
comment on column jobs_internal.job_step.output_subscription_id is 'Of the output''s server.';
comment on column jobs_internal.job_step.output_resource_group_name is 'Of the output''s server.';
comment on column jobs_internal.job_step.output_server_name is 'As given; found in the server directory.';
comment on column jobs_internal.job_step.output_database_name is 'The output''s database.';
comment on column jobs_internal.job_step.output_schema_name is 'As given; dbo means public where there is no dbo.';
comment on column jobs_internal.job_step.output_table_name is 'Made from the first result set where it is absent.';
comment on column jobs_internal.job_step.max_parallelism is 'Databases at once per pool, or per server outside of pools; null = no limit.';
comment on column jobs_internal.job_step.options is 'Everything beyond Elastic Jobs: transaction, settings, rollout, verify, …';
comment on column jobs_internal.job_step.content_hash is 'SHA-256 of all that decides what runs: script, output, options.';
comment on column jobs_internal.job_step.row_version is 'The ETag; carried over to later versions while the step stays the same.';
comment on column jobs_internal.job_step.created_by is 'Who made the step.';
comment on column jobs_internal.job_step.created_at is 'When the step was made.';
comment on column jobs_internal.job_step.modified_by is 'Who changed the step last.';
comment on column jobs_internal.job_step.modified_at is 'When the step was changed last.';

create function jobs_internal.keep_steps_gapless() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
declare
    gap boolean;
begin
    select coalesce(max(step_id), 0) <> count(*) into gap
      from job_step where (job_id, version) = (new.job_id, new.version);
    if gap then
        raise exception 'the steps of a version are numbered 1 … n without a gap' using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.keep_steps_gapless() is 'At commit, the steps of a version count from 1 without a gap.';
create constraint trigger steps_have_no_gap after insert on jobs_internal.job_step
    deferrable initially deferred for each row execute function jobs_internal.keep_steps_gapless();

create function jobs_internal.refuse_change() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    raise exception '% is never changed', tg_table_name using errcode = 'MU013';
end $$;
comment on function jobs_internal.refuse_change() is 'What was written stays as it is.';
create trigger steps_never_change before update on jobs_internal.job_step
    for each row execute function jobs_internal.refuse_change();

create function jobs_internal.refuse_cycle() returns trigger
language plpgsql security definer set search_path = jobs_internal, pg_temp
as $$
begin
    -- One at a time, so that two halves of a cycle can't be made side by side.
    perform lock_name('nested groups', '');
    if exists (
        with recursive inside (id) as (
            select new.nested_group_id
            union
            select m.nested_group_id from target_group_member m join inside i on m.target_group_id = i.id
             where m.nested_group_id is not null
        )
        select from inside where id = new.target_group_id
    ) then
        raise exception 'a target group cannot contain itself, not even through others' using errcode = 'MU013';
    end if;
    return null;
end $$;
comment on function jobs_internal.refuse_cycle() is 'Nested groups form no circle.';
create trigger groups_form_no_circle after insert or update of nested_group_id on jobs_internal.target_group_member
    for each row when (new.nested_group_id is not null) execute function jobs_internal.refuse_cycle();

create table jobs_internal.private_endpoint (
    private_endpoint_id text primary key,
    name                text not null,
    server_id           text not null,
    status              text not null default 'Pending',
    row_version         bigint not null default nextval('jobs_internal.row_version'),
    created_by          text not null,
    created_at          timestamptz not null default clock_timestamp(),
    modified_by         text not null,
    modified_at         timestamptz not null default clock_timestamp(),
    constraint a_private_endpoint_status_is_known check (status in ('Pending', 'Approved', 'Rejected'))
);
create unique index a_private_endpoint_name_is_taken_once on jobs_internal.private_endpoint (lower(name));
comment on table jobs_internal.private_endpoint is 'Wishes to reach a server by a private way, and whether they were approved.';
comment on column jobs_internal.private_endpoint.private_endpoint_id is 'EJ_<uuid>_<name>.';
comment on column jobs_internal.private_endpoint.name is 'Unique without regard to case.';
comment on column jobs_internal.private_endpoint.server_id is 'Resource id of the target server, as given.';
comment on column jobs_internal.private_endpoint.status is 'Pending, Approved or Rejected.';
comment on column jobs_internal.private_endpoint.row_version is 'The ETag.';
comment on column jobs_internal.private_endpoint.created_by is 'Who made it.';
comment on column jobs_internal.private_endpoint.created_at is 'When it was made.';
comment on column jobs_internal.private_endpoint.modified_by is 'Who changed it last.';
comment on column jobs_internal.private_endpoint.modified_at is 'When it was changed last.';

create table jobs_internal.request (
    request_id  uuid primary key,
    kind        text not null,
    args        jsonb not null,
    asked_by    text not null,
    asked_at    timestamptz not null default clock_timestamp(),
    answered_at timestamptz,
    answer      jsonb,
    constraint a_request_kind_is_known check (kind in ('resolve', 'why')),
    constraint an_answer_has_a_time check ((answer is null) = (answered_at is null))
);
create index request_by_age on jobs_internal.request (asked_at);
comment on table jobs_internal.request is 'Questions that only the engine can answer, since it alone reaches the targets.';
comment on column jobs_internal.request.request_id is 'Given by whoever asks.';
comment on column jobs_internal.request.kind is 'resolve: which targets a group yields now.';
comment on column jobs_internal.request.args is 'What it is about.';
comment on column jobs_internal.request.asked_by is 'Who asked.';
comment on column jobs_internal.request.asked_at is 'When.';
comment on column jobs_internal.request.answered_at is 'When the engine answered.';
comment on column jobs_internal.request.answer is 'What it answered: a result or an error.';
