-- What must hold after any fault. Each query names what is broken; no row means all is well.

-- name: I01_no_accepted_operation_is_lost
-- $1: the operations that clients were told of.
select acked.operation_id::text as what
  from unnest($1::uuid[]) acked (operation_id)
  left join operation o using (operation_id)
 where o.operation_id is null;

-- name: I02_one_answer_per_caller_and_key
select caller || ' ' || request_key as what from answer group by caller, request_key having count(*) > 1;

-- name: I03_every_operation_ends_by_its_deadline
-- Running, though its machine is over, rests without a signal for it, or is long overdue.
select o.operation_id::text as what
  from operation o
  left join machine m on m.uid = o.resource_uid
 where o.ended_at is null
   and (m.uid is null
        or m.ended_at is not null
        or m.deadline_at + interval '60 s' < clock_timestamp()
        or (m.operation_id is distinct from o.operation_id
            and not exists (select from signal s
                             where s.machine_uid = m.uid and s.taken_at is null
                               and s.operation_id = o.operation_id)));

-- name: I04_one_running_operation_per_resource
select resource_uid::text as what from operation where ended_at is null group by resource_uid having count(*) > 1;

-- name: I05_only_moves_of_the_table
-- $1: lifecycle/from/to of every edge.
select h.machine_uid || ' ' || h.seq as what
  from history h
  join machine m on m.uid = h.machine_uid
 where h.from_state is not null
   and concat_ws('/', m.lifecycle, h.from_state, h.to_state) <> all ($1::text[]);

-- name: I06_history_is_a_gapless_chain
select machine_uid || ' ' || seq as what
  from (select machine_uid, seq, from_state,
               lag(to_state) over w as before, lag(seq) over w as seq_before, lag(at) over w as at_before, at
          from history
        window w as (partition by machine_uid order by seq)) chain
 where (seq_before is null and seq <> 1)
    or (seq_before is not null and (seq <> seq_before + 1 or from_state is distinct from before or at < at_before))
union all
select m.uid || ' is in ' || m.state
  from machine m
 where m.state is distinct from (select to_state from history h where h.machine_uid = m.uid order by seq desc limit 1);

-- name: I07_nothing_outlives_its_end
select m.uid || ' has ended' as what
  from machine m
 where m.ended_at is not null
   and (exists (select from resource r where r.uid = m.uid)
        or exists (select from signal s where s.machine_uid = m.uid and s.taken_at is null)
        or m.lease_owner is not null);

-- name: I08_a_row_agrees_with_its_operation
-- Succeeded or Failed is never shown while an operation of the resource runs.
select r.id as what
  from resource r
  join operation o on o.resource_uid = r.uid and o.ended_at is null
 where r.provisioning_state in ('Succeeded', 'Failed');
