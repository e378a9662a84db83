UPDATE inbox_failures SET attempts = attempts - 1
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version = ?4
