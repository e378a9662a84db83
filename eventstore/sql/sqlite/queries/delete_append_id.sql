-- Unless it was used again since it was looked at.
DELETE FROM append_ids WHERE append_id = ?1 AND used_at IS ?2
