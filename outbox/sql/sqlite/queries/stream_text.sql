SELECT name FROM streams WHERE stream = ?1
