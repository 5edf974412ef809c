-- name: embedded_endpoints
-- Where every embedded server answers.
select observed #>> '{endpoint,host}' as host, (observed #>> '{endpoint,port}')::integer as port
  from resource
 where type = 'Microsoft.Sql/servers'
   and properties -> 'endpoint' is null
   and observed #>> '{endpoint,port}' is not null;

-- name: embedded_endpoints_of_account
-- Where the embedded servers answer that the account may use; one that is being removed may lose its port
-- to another program.
select s.observed #>> '{endpoint,host}' as host, (s.observed #>> '{endpoint,port}')::integer as port
  from account_server a
  join resource s on s.uid = a.server_uid
 where a.account_uid = $1
   and s.properties -> 'endpoint' is null
   and s.observed #>> '{endpoint,port}' is not null
   and s.provisioning_state not in ('Deleting', 'Failed');

-- name: weak_endpoints_of_account
-- The endpoints that the account may use at which an Owner allowed another login than SCRAM.
select s.properties -> 'endpoint' as endpoint
  from account_server a
  join resource s on s.uid = a.server_uid
 where a.account_uid = $1
   and s.properties #>> '{endpoint,authentication}' in ('md5', 'password')
   and s.provisioning_state <> 'Deleting';

-- name: node_agent_urls
-- Where node agents listen; the port of one that ended may be another program's soon.
select url from node_agents where heartbeat_at > clock_timestamp() - interval '10 minutes';
