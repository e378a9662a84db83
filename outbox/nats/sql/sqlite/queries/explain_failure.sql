UPDATE inbox_failures SET error = ?5
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version = ?4
