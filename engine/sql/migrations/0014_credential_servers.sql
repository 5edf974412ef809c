-- expand: a credential may list the servers that it is for, each at the endpoint that it had then
alter table jobs_internal.credential
    add column servers jsonb,
    add constraint a_credential_lists_servers check
        (servers is null or jsonb_typeof(servers) = 'array' and jsonb_array_length(servers) > 0);
comment on column jobs_internal.credential.servers is
    'Servers that it may log in at: serverId, and the endpoint that each had when it was listed; null = any.';
comment on column jobs_internal.server_directory.embedded is
    'Whether Muster made the cluster; opens nothing: the control plane itself tells engines which addresses are open.';
-- These have one more parameter from here on: two functions of one name would make calls ambiguous.
drop function if exists jobs.sp_add_credential(text, text, text);
drop function if exists jobs.sp_update_credential(text, text, text);
