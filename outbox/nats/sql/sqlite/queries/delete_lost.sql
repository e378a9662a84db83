DELETE FROM inbox_held
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version = ?4 AND broker_sequence = ?5
