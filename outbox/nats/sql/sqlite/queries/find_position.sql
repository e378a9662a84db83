SELECT version FROM inbox_positions WHERE consumer = ?1 AND source = ?2 AND stream = ?3
