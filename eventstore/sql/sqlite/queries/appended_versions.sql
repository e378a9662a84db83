-- What an append that took the sequences ?1 to ?2 appended to which stream.
SELECT stream, version FROM events WHERE sequence BETWEEN ?1 AND ?2
