-- ?3 is what the process knows itself. One that sees the message wait for the first time adds what
-- has passed by the wall clock since another looked, ?4 at most.
UPDATE inbox_held
SET waited = max(?3, waited + max(0, min((?2 - coalesce(looked_at, held_at)) / 1000, ?4))),
    looked_at = ?2
WHERE held = ?1
RETURNING waited
