SELECT stream FROM streams WHERE name = ?1
