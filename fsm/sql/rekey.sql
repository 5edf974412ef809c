-- name: sealed_otherwise
-- Some rows with a secret under another key than the one whose prefix is given.
select uid, sealed
  from resource
 where exists (select from jsonb_each_text(sealed) as one (name, text)
                where starts_with(one.text, 'v1.') and not starts_with(one.text, $1))
 limit $2;

-- name: set_sealed
-- The same secrets under another key, unless they were changed meanwhile; nothing that is shown changes.
update resource set sealed = $3 where uid = $1 and sealed = $2;
