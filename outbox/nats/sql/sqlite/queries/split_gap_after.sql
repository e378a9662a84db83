UPDATE inbox_gaps SET after = ?4
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND after < ?4 AND ?4 < before
