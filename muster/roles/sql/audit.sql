-- name: check_chains
-- Every audit event that is not what was written, or is gone without retention; the expression of the digest is that
-- of the migration, spelled out: a function in the database could have been replaced.
with link as (
    select l.*,
           lag(l.seq) over chain_order as before_seq,
           lag(l.hash) over chain_order as before_hash,
           lead(l.seq) over chain_order as after_seq
      from audit_link l
    window chain_order as (partition by l.chain order by l.seq nulls last)
), finding as (
    select l.chain, l.seq, coalesce(l.event_id, e.event_id) as event_id,
           case when l.event_id is null then 'the event was added outside the chain'
                when e.event_id is null then 'the event was removed'
                when l.digest <> pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.jsonb_build_array(
                         e.event_id, (extract(epoch from e.at) * 1000000)::bigint, e.tenant_id, e.subscription_key,
                         e.group_key, e.resource_id, e.action, e.status, e.caller, e.caller_type, e.principal_id,
                         e.token_id, e.caller_address, e.correlation_id, e.request_id, e.operation_id,
                         e.detail)::text, 'UTF8')) then 'the event was changed'
                when l.chain <> e.tenant_id || ' ' || coalesce('/subscriptions/' || e.subscription_key, '/')
                    then 'the event is in the wrong chain'
                when l.seq is null then null
                when c.chain is null then 'the record of the chain was removed'
                when l.seq <> coalesce(l.before_seq, c.removed_seq) + 1 then 'events before it were removed'
                when l.hash <> pg_catalog.sha256(coalesce(l.before_hash, c.removed_hash) || l.digest)
                    then 'the chain does not fit from here on'
                when l.after_seq is null and (l.seq, l.hash) <> (c.seq, c.hash) then 'events after it were removed'
           end as problem
      from link l
      full join audit_event e on e.event_id = l.event_id
      left join audit_chain c on c.chain = l.chain
    union all
    select c.chain, c.seq, null, 'all events of the chain were removed'
      from audit_chain c
     where (c.seq, c.hash) is distinct from (c.removed_seq, c.removed_hash)
       and not exists (select from audit_link l where l.chain = c.chain and l.seq is not null)
)
select chain, seq, event_id, problem from finding where problem is not null order by chain, seq, event_id limit 100;

-- name: list_heads
-- Where each chain ends.
select chain, seq, hash from audit_chain order by chain;

-- name: hash_at
-- The hash of a chain at a place: null where there is none, the anchor's where retention has removed it.
select case when c.removed_seq = $2 then c.removed_hash
            else (select l.hash from audit_link l where l.chain = c.chain and l.seq = $2)
       end as hash,
       c.removed_seq > $2 as removed
  from audit_chain c
 where c.chain = $1;
