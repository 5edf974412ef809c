-- expand: a control database belongs to one job account
create unique index one_account_per_control_database on resource (lower(properties ->> 'databaseId'))
    where type = 'Microsoft.Sql/servers/jobAgents';
