UPDATE inbox_held
SET claims = 0, wish = NULL,
    due_at = CASE WHEN EXISTS (SELECT 1 FROM inbox_held AS e
                               WHERE e.consumer = ?1 AND e.source = ?2 AND e.stream = ?3
                                 AND e.version < ?4)
             THEN NULL ELSE ?5 END
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version = ?4
