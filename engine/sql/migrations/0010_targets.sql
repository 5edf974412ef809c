-- expand: label selectors of members, labels of databases, servers that are listed again while a step runs
alter table jobs_internal.target_group_member
    add column labels text,
    add constraint labels_select_among_databases check (labels is null or target_type in ('SqlServer', 'SqlDatabase')),
    add constraint labels_have_a_length check (octet_length(labels) between 1 and 2048);
comment on column jobs_internal.target_group_member.labels is
    'Label selector: only databases with such labels are included or excluded; null = all.';
drop index jobs_internal.a_member_stands_once;
create unique index a_member_stands_once on jobs_internal.target_group_member (
    target_group_id, membership_type, target_type, coalesce(lower(server_name), ''), coalesce(database_name, ''),
    coalesce(lower(elastic_pool_name), ''), coalesce(shard_map_name, ''), coalesce(schema_pattern, ''),
    md5(coalesce(query, '')), coalesce(nested_group_id, '00000000-0000-0000-0000-000000000000'),
    md5(coalesce(labels, '')));

alter table jobs_internal.server_directory
    add column database_labels jsonb not null default '{}',
    add constraint database_labels_are_an_object check (jsonb_typeof(database_labels) = 'object');
comment on column jobs_internal.server_directory.database_labels is
    'Labels of database resources, by the name of the database; databases without labels are not in it.';

alter table jobs_internal.snapshot
    add column groups jsonb,
    add column joined jsonb not null default '[]',
    add constraint joined_is_a_list check (jsonb_typeof(joined) = 'array');
comment on column jobs_internal.snapshot.targets is 'How many, when the step began.';
comment on column jobs_internal.snapshot.targets_hash is 'SHA-256 over the targets in their order, when the step began.';
comment on column jobs_internal.snapshot.groups is
    'The groups as they were defined, if servers could not be listed: later lists follow the same rules.';
comment on column jobs_internal.snapshot.joined is
    'Servers, or databases whose schemas are the targets, that were listed while the step ran: after how many '
    'attempts, when, and how many targets joined the step.';

drop function if exists jobs.sp_add_target_group_member(
    text, text, text, text, text, text, text, text, text, text, text, text, text, text);
drop function if exists jobs_internal.live_targets(bigint, date, uuid, integer);
drop function if exists jobs_internal.create_target_executions(jobs_internal.job_execution, integer, uuid, integer[]);
