-- Their last message, the one before version `before`, has come.
DELETE FROM inbox_gaps
WHERE consumer = ?1 AND source = ?2 AND stream = ?3
  AND (missing <= after OR after + 1 >= before)
