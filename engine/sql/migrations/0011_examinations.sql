-- expand: requests that examine a target group or a login; the history of a target
alter table jobs_internal.request
    drop constraint a_request_kind_is_known,
    add constraint a_request_kind_is_known check (kind in ('resolve', 'why', 'plan', 'doctor', 'login'));
comment on column jobs_internal.request.kind is
    'resolve: which targets a group yields now; doctor: whether steps can use them; login: where a credential can log '
    'in; why: what a target waits for.';
create index snapshot_target_by_database on jobs_internal.snapshot_target (server_name, database_name);
