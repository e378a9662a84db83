UPDATE inbox_held
SET claims = claims + 1, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE ?2 END
WHERE held = ?1
RETURNING claims
