UPDATE inbox_held SET due_at = ?4
WHERE held = (SELECT held FROM inbox_held
              WHERE consumer = ?1 AND source = ?2 AND stream = ?3 ORDER BY version LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM inbox_failures AS f
                  WHERE f.consumer = ?1 AND f.source = ?2 AND f.stream = ?3
                    AND f.version = inbox_held.version)
